import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { untilBootstrapped } from '../support/bootstrapped.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type KbctlProcess, startRun } from '../support/kbctl-process.ts';
import { freePort } from '../support/server-process.ts';

const RANGE = '10.31.0.0/24';
const SERVICES = '/api/v1/namespaces/default/services';

let etcd: Etcd;
let apiserver: KubeApiserver;
let folder: string;
let child: KbctlProcess | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-local-admission-'));
  etcd = await startEtcd();
  apiserver = await startKubeApiserver({ etcd, serviceClusterIPRange: RANGE });
  await untilBootstrapped(apiserver);
});

afterAll(async () => {
  await child?.end('SIGKILL');
  await etcd?.stop();
  rmSync(folder, { recursive: true, force: true });
});

test('an API server that is started with the files of "kbctl run --admission" allocates through its webhook until it ends', async () => {
  const port = await freePort('127.0.0.1');
  const run = startRun(words(port));
  child = run;
  // Ranges open for allocation after a pass of each repair.
  await run.untilItPrints(/node-port-repair pass succeeded/);
  const admission = join(folder, 'data', 'admission');
  const admitted = await startKubeApiserver({
    etcd,
    serviceClusterIPRange: RANGE,
    extraArgs: [`--admission-control-config-file=${join(admission, 'config.yaml')}`],
  });
  const webhook = parse(readFileSync(join(admission, 'webhook.yaml'), 'utf8'));
  const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  expect((await admitted.request('POST', path, webhook)).status).toBe(201);

  const create = (name: string) =>
    admitted.request('POST', SERVICES, { metadata: { name }, spec: { type: 'NodePort', ports: [{ port: 80 }] } });
  let services = 0;
  await eventually(async () => {
    services += 1;
    const { body } = await create(`shop-${services}`);
    expect(body).toMatchObject({ spec: { clusterIP: expect.stringMatching(/^10\.31\.0\./) } });
    expect(run.output()).toMatch(/admission: allocated .*service=default.shop-/);
  });

  await run.end('SIGTERM');
  const { status, body } = await create('too-late');
  expect({ status, body }).toMatchObject({
    status: 500,
    body: { message: expect.stringContaining('services.kube-bootstrap-controller.io') },
  });
});

function words(port: number): string[] {
  const spec = {
    name: 'demo',
    mode: 'enforce',
    allocator: 'table',
    kubeconfig: { file: 'the one that is named' },
    apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
    serviceClusterIPRange: RANGE,
    service: { securePort: apiserver.port },
  };
  const file = join(folder, 'cluster.yml');
  writeFileSync(file, JSON.stringify(spec));
  const data = join(folder, 'data');
  return ['-f', file, '--kubeconfig', apiserver.kubeconfigFile, '--data', data, '--admission', `${port}`, '--verbose'];
}
