import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findBinaries, KUBERNETES_VERSION } from '../support/binaries.ts';
import { type Etcd, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

describe('the control planes of this suite', () => {
  let etcd: Etcd;

  beforeAll(async () => {
    etcd = await startEtcd();
  });
  afterAll(() => etcd?.stop());

  test('the API server of this suite has the version that is tested', async () => {
    const apiserver = await startKubeApiserver({ etcd });
    expect(await apiserver.request('GET', '/version')).toMatchObject({ body: { gitVersion: KUBERNETES_VERSION } });
  });

  test('an API server that cannot start fails with the end of its log', async () => {
    await expect(startKubeApiserver({ etcd, extraArgs: ['--no-such-flag'] })).rejects.toThrow(
      /ended with code 1\. .*unknown flag: --no-such-flag/s,
    );
  });
});

test('a server does not outlive the process that started it, even when that is killed', async () => {
  const harness = join(import.meta.dirname, '../support/control-plane.ts');
  const script = `import { startEtcd } from ${JSON.stringify(harness)};
    console.log((await startEtcd()).url);
    setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(starter.stdout, 'data');
  const health = `${String(line).trim()}/health`;
  expect((await fetch(health)).status).toBe(200);

  starter.kill('SIGKILL');

  await eventually(() => expect(fetch(health)).rejects.toThrow());
});

test('missing binaries are named, with the resolution', () => {
  const env = { ...process.env, KUBEBUILDER_ASSETS: '/nowhere' };
  expect(() => findBinaries(env)).toThrow(/\/nowhere\/etcd and \/nowhere\/kube-apiserver .* set KUBEBUILDER_ASSETS/);
});
