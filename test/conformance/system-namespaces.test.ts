import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { type Handlers, startHandlers } from '../support/handlers.ts';
import { type ServiceAccount, serviceAccount } from '../support/service-account.ts';

jest.setTimeout(120_000);

const LOOP = 'system-namespaces';
const NAMESPACES = ['kube-system', 'kube-public', 'default', 'kube-node-lease'];

let etcd: Etcd;
let apiserver: KubeApiserver;
let account: ServiceAccount;
let handlers: Handlers;

beforeAll(async () => {
  etcd = await startEtcd();
  apiserver = await startKubeApiserver({ etcd, hooksOff: true });
  account = await serviceAccount(apiserver, 'namespace-maker');
  writeFileSync(apiserver.kubeconfigFile, account.kubeconfigYaml);
  handlers = await startHandlers({
    kubeconfigFile: apiserver.kubeconfigFile,
    spec: { apiServers: [{ address: '10.9.8.7' }] },
  });
});

afterAll(async () => {
  await handlers?.close();
  await etcd?.stop();
});

async function versions(): Promise<Record<string, string | undefined>> {
  const { body } = await apiserver.request<{ items: readonly KubernetesObject[] }>('GET', '/api/v1/namespaces');
  const found = body.items.map(({ metadata }) => [metadata.name, metadata.resourceVersion] as const);
  return Object.fromEntries(found.filter(([name]) => NAMESPACES.includes(name)));
}

test('without rights each namespace is told as forbidden and none is made, then with rights all four are', async () => {
  // Other hooks of this server make two of them, which no API call can delete.
  await eventually(async () => expect(Object.keys(await versions()).sort()).toEqual(['kube-public', 'kube-system']));
  for (const name of NAMESPACES) await etcd.delete(`/registry/namespaces/${name}`);

  const refused = await handlers.run(LOOP);

  expect(refused.summary).toEqual({ passes: 1, failed: 1, skipped: 0 });
  expect(refused.errors).toEqual(
    NAMESPACES.map((name) =>
      expect.stringMatching(
        new RegExp(
          `^Forbidden: unable to create required kubernetes system Namespace ${name}: .* answered 403 .*` +
            `"system:serviceaccount:accounts:namespace-maker" cannot get resource "namespaces".*` +
            'Grant this to the user or service account of the kubeconfig',
        ),
      ),
    ),
  );
  expect(refused.changes).toEqual([]);
  expect(await handlers.record(LOOP)).toMatchObject({ outcome: 'failed', error: { code: 'Forbidden' } });
  expect(await versions()).toEqual({});

  await account.grant([{ apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'create'] }]);

  const made = await handlers.run(LOOP);

  expect(made.summary).toEqual({ passes: 1, failed: 0, skipped: 0 });
  expect(made.changes).toEqual(NAMESPACES.map((name) => `created namespace ${name}`));
  expect(Object.keys(await versions()).sort()).toEqual([...NAMESPACES].sort());
  expect(await handlers.record(LOOP)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
});

test('namespaces that are there are left as they are', async () => {
  const before = await versions();

  const pass = await handlers.run(LOOP);

  expect(pass).toMatchObject({ summary: { passes: 1, failed: 0 }, changes: [], errors: [] });
  expect(await versions()).toEqual(before);
});

test('one that was deleted is made again', async () => {
  await etcd.delete('/registry/namespaces/default');

  expect(await handlers.run(LOOP)).toMatchObject({ changes: ['created namespace default'] });
});
