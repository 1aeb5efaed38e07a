import { describe, expect, test } from '@jest/globals';
import { storedIPAddress, storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { rawRequests } from '../support/raw-requests.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import {
  parentsOf,
  runningHandlers,
  runningWebhook,
  runningWithoutHooks,
  SERVICE_CIDRS,
  SERVICES,
} from './running-control-plane.ts';

const RANGE = '10.0.0.0/24';
const FLOWS = '/apis/flowcontrol.apiserver.k8s.io/v1';
const { etcd, apiserver, handlers, spec } = runningWithoutHooks(RANGE);

/* The tests run in order: each starts with the state that the previous test left. */
const repair = () => handlers.run('cluster-ip-repair');
const corrected = ({ changes }: { readonly changes: readonly string[] }) =>
  changes.filter((change) => change.includes('IPAddress'));

async function created(path: string, name: string, spec: object): Promise<number> {
  return (await apiserver.request('POST', path, { metadata: { name }, spec })).status;
}

const withAddress = (name: string, clusterIP: string) => created(SERVICES, name, { clusterIP, ports: [{ port: 80 }] });

test('passes change and report nothing in a cluster with ServiceCIDRs of one or two addresses and a ServiceCIDR within another', async () => {
  for (const [name, cidr] of [
    ['one', '10.1.0.7/32'],
    ['two', '10.2.0.6/31'],
    ['within', '10.0.0.0/25'],
  ] as const) {
    expect(await created(SERVICE_CIDRS, name, { cidrs: [cidr] })).toBe(201);
  }
  expect([await withAddress('in-one', '10.1.0.7'), await withAddress('in-two', '10.2.0.7')]).toEqual([422, 422]);
  expect(await withAddress('in-both', '10.0.0.9')).toBe(201);
  const before = await parentsOf(apiserver);
  for (let pass = 0; pass < 3; pass++) {
    handlers.advance(180_000);
    const report = await repair();
    expect({ ...report, changes: corrected(report) }).toMatchObject({ errors: [], changes: [], findings: [] });
  }
  expect(await parentsOf(apiserver)).toEqual(before);
});

test('if an IPAddress does not refer to the Service with that address, the second pass replaces the IPAddress', async () => {
  const wrongParents = {
    a: { namespace: 'default', name: 'gone' },
    b: { name: 'no-namespace' },
    c: { name: 'in-both', namespace: 'default' },
    d: { resource: 'pods', name: 'p' },
    e: { group: 'example.com', name: 'e' },
  };
  const all = Object.entries(wrongParents);
  const addressOf = (index: number) => `10.0.0.${100 + index}`;
  for (const [index, [name, parent]] of all.entries()) {
    const item = addressOf(index);
    await etcd.put(`/registry/ipaddresses/${item}`, storedIPAddress(item, parent));
    const spec = { type: 'ClusterIP', clusterIP: item, clusterIPs: [item], ports: [{ port: 80 }] };
    await etcd.putServices([storedService('default', name, spec)]);
  }
  handlers.advance(180_000);
  expect(corrected(await repair())).toEqual([]);
  handlers.advance(180_000);
  const report = await repair();
  expect(report.errors).toEqual([]);
  expect(corrected(report).toSorted()).toEqual(
    all.map(([name], index) => `replaced IPAddress ${addressOf(index)} for Service default/${name}`),
  );
  const parents = await parentsOf(apiserver);
  expect(all.map((_, index) => parents.get(addressOf(index))?.name)).toEqual(all.map(([name]) => name));
});

test('if a ServiceCIDR that contains the address of a Service is deleted, the IPAddress stays, and no other Service gets the address', async () => {
  const used = { cidrs: ['10.3.0.0/24'] };
  expect(await created(SERVICE_CIDRS, 'used', used)).toBe(201);
  await eventually(async () => expect(await withAddress('user', '10.3.0.9')).toBe(201));
  expect((await apiserver.request('DELETE', `${SERVICE_CIDRS}/used`)).status).toBe(200);
  for (let pass = 0; pass < 3; pass++) {
    handlers.advance(180_000);
    const { changes, errors, findings } = await repair();
    expect([errors, findings]).toEqual([[], [expect.stringMatching(/^outOfRange: .*10\.3\.0\.9/)]]);
    expect(changes.filter((change) => change.includes('IPAddress'))).toEqual([]);
  }
  expect(await created(SERVICE_CIDRS, 'used', used)).toBe(201);
  await eventually(async () => expect(await withAddress('free', '10.3.0.10')).toBe(201));
  expect(await withAddress('second', '10.3.0.9')).toBe(422);
  expect(await repair()).toMatchObject({ errors: [], findings: [] });
});

test('if the ServiceCIDR kubernetes was deleted, a pass creates it again; if the spec then gets a second range, a later pass adds this range to the ServiceCIDR', async () => {
  expect((await apiserver.request('DELETE', `${SERVICE_CIDRS}/kubernetes`)).status).toBe(200);
  const changes = [`created servicecidr kubernetes: ${RANGE}`];
  expect(await repair()).toMatchObject({ errors: [], changes, findings: [] });
  await eventually(async () => expect(await withAddress('again', '10.0.0.201')).toBe(201));
  await handlers.register({ serviceClusterIPRange: `${RANGE},fd00::/112` });
  const updated = `updated servicecidr kubernetes: ${RANGE} fd00::/112`;
  expect(await repair()).toMatchObject({ errors: [], changes: expect.arrayContaining([updated]) });
  const { body } = await apiserver.request('GET', `${SERVICE_CIDRS}/kubernetes`);
  expect(body).toMatchObject({ spec: { cidrs: [RANGE, 'fd00::/112'] } });
});

describe('a user whose requests are rejected with 429 by API Priority and Fairness', () => {
  const { webhook, register } = runningWebhook(() => undefined);
  let token = '';
  const throttled = runningHandlers(async () => {
    const { kubeconfigFile, ...access } = await applyShippedRbac(apiserver);
    token = access.token;
    return { kubeconfigFile, spec: spec() };
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
    const rule = { apiGroups: ['events.k8s.io'], operations: ['CREATE'], resources: ['events'] };
    await register(apiserver, rule, { timeoutSeconds: 29, failurePolicy: 'Ignore' });
  }

  test('a pass fails and changes nothing while the API server rejects its requests with 429, and a later pass succeeds', async () => {
    expect(await throttled.run('kubernetes-service')).toMatchObject({ errors: [] });
    const before = await parentsOf(apiserver);
    await closeForAll();
    const { url, caFile } = apiserver;
    const { request, close } = rawRequests({ url, caFile, token });
    const texts = { action: 'a', reason: 'r', type: 'Normal', note: 'n' };
    const event = { ...texts, eventTime: '2026-01-01T00:00:00.000000Z', regarding: { namespace: 'default' } };
    const by = { reportingController: 'kube-bootstrap-controller/test', reportingInstance: 'i' };
    const reached = new Promise((resolve) => webhook.server.once('request', resolve));
    const body = { metadata: { name: 'e' }, ...event, ...by };
    const slow = request('POST', '/apis/events.k8s.io/v1/namespaces/default/events', body);
    await reached;
    for (const loop of ['cluster-ip-repair', 'kubernetes-service'] as const) {
      throttled.advance(180_000);
      expect(await throttled.run(loop)).toMatchObject({ errors: [expect.stringMatching(/^Throttled: /)] });
    }
    expect(await parentsOf(apiserver)).toEqual(before);
    expect((await slow).status).toBe(201);
    throttled.advance(10_000);
    expect(await throttled.run('kubernetes-service')).toMatchObject({ errors: [] });
    expect(await throttled.run('cluster-ip-repair')).toMatchObject({ errors: [] });
    await close();
  });
});
