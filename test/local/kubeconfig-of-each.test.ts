import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { kubeconfigOfEach } from '../../local/local-environment.ts';
import { openCluster } from '../../local/open-cluster.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { IDENTITY } from '../support/stand-in.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const { signal } = new AbortController();
const kubeconfigTo = (server: string) => kubeconfigOf('a-cluster', server, IDENTITY);

/** Loads the kubeconfig of a cluster in a run that was started for the cluster "started". */
const load = kubeconfigOfEach('started', () =>
  parseKubeconfig(kubeconfigTo('https://192.0.2.1:6443'), 'that was named'),
);

test('a local run reads the kubeconfig file that the changed spec names, unless the command line names a file', async () => {
  const own = temporaryFolder();
  const file = async (name: string, content: string) => {
    await writeFile(join(own, name), content);
    return join(own, name);
  };
  const first = await file('first.kubeconfig', kubeconfigTo('https://192.0.2.1:6443'));
  await file('second.kubeconfig', kubeconfigTo('https://192.0.2.2:6443'));
  const fields = { mode: 'observe', kubeconfig: { file: 'first.kubeconfig' }, apiServers: [{ address: '10.9.8.7' }] };
  const specFile = await file('cluster.yml', JSON.stringify({ name: 'demo', ...fields }));
  const terminal = { signal, say: () => undefined };
  const serverOf = async (kubeconfigFile?: string) => {
    const real = { specFile, ...(kubeconfigFile !== undefined && { kubeconfigFile }) };
    await using opened = await openCluster({ real, dataFolder: join(own, 'data') }, terminal);
    const changed = { ...opened.spec, kubeconfig: { file: 'second.kubeconfig' } };
    return (await opened.loadKubeconfig(changed, signal)).server;
  };
  expect([await serverOf(), await serverOf(first)]).toEqual(['https://192.0.2.2:6443', 'https://192.0.2.1:6443']);
});

test('a local run executes no plugin of a cluster that another writer registered in its table', async () => {
  const marker = join(folder, 'the-plugin-ran');
  const file = join(folder, 'hostile.kubeconfig');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: '/bin/sh', args: ['-c', `touch ${marker}`] };
  const content = JSON.parse(kubeconfigTo('https://192.0.2.9:6443'));
  content.users[0].user = { exec };
  await writeFile(file, JSON.stringify(content));

  const loading = load(aClusterSpec({ name: 'hostile', kubeconfig: { file } }), signal);

  const message = expect.stringContaining('a plugin runs only with --kubeconfig of kbctl');
  await expect(loading).rejects.toMatchObject({ code: 'BadKubeconfig', message });
  expect(existsSync(marker)).toBe(false);
});
