import { createServer } from 'node:https';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { storedService } from '../support/etcd-client.ts';
import { rawRequests } from '../support/raw-requests.ts';
import { running } from '../support/running.ts';
import { portOf } from '../support/serve.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { IPV4_LABELS } from '../support/stock-objects.ts';
import { runningHandlers } from './running-control-plane.ts';

/* The repair of IPAddresses in a cluster without kube-controller-manager: no other program waits until a ServiceCIDR is unused. */

const RANGE = '10.0.0.0/24';
const SERVICES = '/api/v1/namespaces/default/services';
const CIDRS = '/apis/networking.k8s.io/v1/servicecidrs';
const IP_ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses';
const FLOWS = '/apis/flowcontrol.apiserver.k8s.io/v1';
const etcd = running(startEtcd);
const apiserver = running(() =>
  startKubeApiserver({ etcd, hooksOff: true, serviceClusterIPRange: RANGE, readyPath: '/livez' }),
);
const fields = () => ({
  serviceClusterIPRange: RANGE,
  repair: { ipAddresses: true },
  apiServers: [{ address: '10.9.8.7', probe: { url: `${apiserver.url}/readyz` } }],
  service: { securePort: apiserver.port },
});
const handlers = runningHandlers(() => ({ kubeconfigFile: apiserver.kubeconfigFile, spec: fields() }));

const repair = () => handlers.run('cluster-ip-repair');
const corrected = ({ changes }: { readonly changes: readonly string[] }) =>
  changes.filter((change) => change.includes('IPAddress'));

async function created(path: string, name: string, spec: object): Promise<number> {
  return (await apiserver.request('POST', path, { metadata: { name }, spec })).status;
}

const withAddress = (name: string, clusterIP: string) => created(SERVICES, name, { clusterIP, ports: [{ port: 80 }] });

async function parents(): Promise<Record<string, string>> {
  const { body } = await apiserver.request<{ items: WholeObject<V1IPAddress>[] }>('GET', IP_ADDRESSES);
  return Object.fromEntries(body.items.map(({ metadata, spec }) => [metadata.name, spec.parentRef.name]));
}

beforeAll(async () => {
  for (const loop of ['system-namespaces', 'kubernetes-service', 'cluster-ip-repair'] as const) {
    expect(await handlers.run(loop)).toMatchObject({ errors: [] });
  }
});

test('a ServiceCIDR of one or two addresses, or one within another ServiceCIDR, does not change what passes do', async () => {
  for (const [name, cidr] of [
    ['one', '10.1.0.7/32'],
    ['two', '10.2.0.6/31'],
    ['within', '10.0.0.0/25'],
  ] as const) {
    expect(await created(CIDRS, name, { cidrs: [cidr] })).toBe(201);
  }
  expect([await withAddress('in-one', '10.1.0.7'), await withAddress('in-two', '10.2.0.7')]).toEqual([422, 422]);
  expect(await withAddress('in-both', '10.0.0.9')).toBe(201);
  const before = await parents();
  for (let pass = 0; pass < 3; pass++) {
    handlers.advance(180_000);
    const report = await repair();
    expect({ ...report, changes: corrected(report) }).toMatchObject({ errors: [], changes: [], findings: [] });
  }
  expect(await parents()).toEqual(before);
});

test('the second pass replaces each IPAddress that does not refer to the Service with its address', async () => {
  const rows = {
    a: { namespace: 'default', name: 'gone' },
    b: { name: 'no-namespace' },
    c: { name: 'in-both', namespace: 'default' },
  };
  const kinds = {
    d: { group: '', resource: 'pods', name: 'p' },
    e: { group: 'example.com', resource: 'services', name: 'e' },
  };
  const all = Object.entries({ ...rows, ...kinds });
  const addressOf = (index: number) => `10.0.0.${100 + index}`;
  for (const [index, [name, parent]] of all.entries()) {
    const item = addressOf(index);
    const metadata = {
      name: item,
      uid: `uid-${index}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: IPV4_LABELS,
    };
    const spec = { parentRef: { group: '', resource: 'services', ...parent } };
    await etcd.put(`/registry/ipaddresses/${item}`, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IPAddress',
      metadata,
      spec,
    });
    await etcd.putServices([
      storedService('default', name, { type: 'ClusterIP', clusterIP: item, clusterIPs: [item], ports: [{ port: 80 }] }),
    ]);
  }
  handlers.advance(180_000);
  expect(corrected(await repair())).toEqual([]);
  handlers.advance(180_000);
  const report = await repair();
  expect(report.errors).toEqual([]);
  expect(corrected(report).toSorted()).toEqual(
    all.map(([name], index) => `replaced IPAddress ${addressOf(index)} for Service default/${name}`),
  );
  expect(await parents()).toMatchObject(Object.fromEntries(all.map(([name], index) => [addressOf(index), name])));
});

describe('a user whose requests API Priority and Fairness rejects with 429', () => {
  const authority = makeAuthority('slow webhook of the test');
  const webhook = createServer(authority.issue(['127.0.0.1']), () => undefined);
  let token = '';
  const throttled = runningHandlers(async () => {
    const { kubeconfigFile, ...access } = await applyShippedRbac(apiserver);
    token = access.token;
    return { kubeconfigFile, spec: fields() };
  });

  /** Admits one request of service accounts at a time, and makes the creation of an Event last for 29 s. */
  async function closeForAll(): Promise<void> {
    const nothing = { nominalConcurrencyShares: 0, lendablePercent: 0, borrowingLimitPercent: 0 };
    const limited = { ...nothing, limitResponse: { type: 'Reject' } };
    expect(await created(`${FLOWS}/prioritylevelconfigurations`, 'closed', { type: 'Limited', limited })).toBe(201);
    const subjects = [{ kind: 'Group', group: { name: 'system:serviceaccounts' } }];
    const resourceRules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }];
    const rules = [{ subjects, resourceRules }];
    const flow = { priorityLevelConfiguration: { name: 'closed' }, matchingPrecedence: 2, rules };
    expect(await created(`${FLOWS}/flowschemas`, 'closed', flow)).toBe(201);
    const url = `https://127.0.0.1:${await portOf(webhook)}/`;
    const hook = {
      name: 'slow.example.com',
      clientConfig: { url, caBundle: Buffer.from(authority.ca).toString('base64') },
      rules: [{ apiGroups: ['events.k8s.io'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['events'] }],
      ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 29, failurePolicy: 'Ignore' },
    };
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
    expect((await apiserver.request('POST', path, { metadata: { name: 'slow' }, webhooks: [hook] })).status).toBe(201);
  }

  test('a pass fails and changes nothing while the API server rejects its requests with 429, and a later pass succeeds', async () => {
    expect(await throttled.run('kubernetes-service')).toMatchObject({ errors: [] });
    const before = await parents();
    await closeForAll();
    const { url, caFile } = apiserver;
    const { request, close } = rawRequests({ url, caFile, token });
    const times = { eventTime: '2026-01-01T00:00:00.000000Z' };
    const event = {
      ...times,
      action: 'a',
      reason: 'r',
      type: 'Normal',
      note: 'n',
      regarding: { namespace: 'default' },
    };
    const by = { reportingController: 'kube-bootstrap-controller/test', reportingInstance: 'i' };
    const reached = new Promise((resolve) => webhook.once('request', resolve));
    const slow = request('POST', '/apis/events.k8s.io/v1/namespaces/default/events', {
      metadata: { name: 'e' },
      ...event,
      ...by,
    });
    await reached;
    for (const loop of ['cluster-ip-repair', 'kubernetes-service'] as const) {
      throttled.advance(180_000);
      expect(await throttled.run(loop)).toMatchObject({ errors: [expect.stringMatching(/^Throttled: /)] });
    }
    expect(await parents()).toEqual(before);
    expect((await slow).status).toBe(201);
    throttled.advance(10_000);
    expect(await throttled.run('kubernetes-service')).toMatchObject({ errors: [] });
    expect(await throttled.run('cluster-ip-repair')).toMatchObject({ errors: [] });
    await close();
    webhook.close();
    webhook.closeAllConnections();
  });
});
