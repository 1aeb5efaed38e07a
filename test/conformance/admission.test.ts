import { expect, test } from '@jest/globals';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { readRange } from '../../lib/table/ranges.ts';
import type { StoredService, StoredServiceSpec } from '../../local/stand-in/service-storage.ts';
import { found } from '../support/found.ts';
import { CLUSTER } from '../support/handlers.ts';
import { itemsIn } from '../support/ranges.ts';
import { running } from '../support/running.ts';
import { type AdmittedControlPlane, startAdmittedControlPlane } from './admitted-control-plane.ts';

interface Reply {
  readonly status: number;
  readonly body: StoredService & { readonly message?: string; readonly reason?: string };
}

const RANGES = ['10.96.0.0/20', 'fd00:10:96::/112'] as const;
const services = '/api/v1/namespaces/default/services';

/* The tests run in order: each starts with the state that the previous test left. */
const plane = running(() => startAdmittedControlPlane(RANGES.join()));

const request: AdmittedControlPlane['apiserver']['request'] = (...args) => plane.apiserver.request(...args);

function create(name: string, spec: StoredServiceSpec): Promise<Reply> {
  const body = { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } };
  return request('POST', services, body);
}

/** Returns the allocated items of one range in the table. */
async function takenIn(key: RangeKey): Promise<readonly string[]> {
  return itemsIn(found(await readRange(plane.handlers.table, CLUSTER, key)).stored);
}

function nodePortsOf({ spec }: StoredService): string[] {
  const numbers = [...(spec.ports ?? []).map(({ nodePort }) => nodePort), spec.healthCheckNodePort];
  return numbers.filter((number) => number !== undefined && number !== 0).map(String);
}

function verdicts(outcome: string) {
  return plane.world.telemetry.lines.filter(({ message }) => message === `admission: ${outcome}`);
}

test('a new Service gets its address and node port from the table, and the API server accepts them', async () => {
  const reply = await create('web', { type: 'NodePort' });

  expect(reply.status).toBe(201);
  const { clusterIP = '', ports = [] } = reply.body.spec;
  expect(verdicts('allocated').at(-1)?.fields).toMatchObject({
    cluster: CLUSTER,
    service: 'default/web',
    clusterIPs: [clusterIP],
    nodePorts: [String(ports[0]?.nodePort)],
  });
  expect(await takenIn(RANGE_KEYS.primary)).toContain(clusterIP);
  expect(await takenIn(RANGE_KEYS.nodePorts)).toContain(String(ports[0]?.nodePort));
});

test.each<[string, RangeKey, string, (item: string) => StoredServiceSpec]>([
  [
    'address',
    RANGE_KEYS.primary,
    'spec.clusterIPs: Invalid value: ["ITEM"]: failed to allocate IP ITEM: provided IP is already allocated',
    (clusterIP) => ({ clusterIP }),
  ],
  [
    'node port',
    RANGE_KEYS.nodePorts,
    'spec.ports[0].nodePort: Invalid value: ITEM: provided port is already allocated',
    (nodePort) => ({ type: 'NodePort', ports: [{ port: 80, nodePort: Number(nodePort) }] }),
  ],
])('the webhook refuses an allocated %s like the API server, and allocates nothing', async (_, key, fault, specOf) => {
  const item = (await takenIn(key)).at(-1) ?? '';
  const message = `Service "copy" is invalid: ${fault.replaceAll('ITEM', item)}`;
  const before = await takenIn(RANGE_KEYS.primary);

  const refusal = { reason: 'Invalid', message: expect.stringContaining(message) };
  expect(await create('copy', specOf(item))).toMatchObject({ status: 422, body: refusal });

  expect((await withoutWebhook(() => create('copy', specOf(item)))).body.message).toBe(message);
  expect(await takenIn(RANGE_KEYS.primary)).toEqual(before);
});

/** Runs `work` while the API server does not call the webhook. */
async function withoutWebhook(work: () => Promise<Reply>): Promise<Reply> {
  const name = 'zz-kube-bootstrap-controller';
  const group = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${name}`;
  const { body } = await request<{ webhooks: object[] }>('GET', group);
  const [hook] = body.webhooks;
  const selecting = async (namespaceSelector: object) => {
    const patch = { webhooks: [{ ...hook, namespaceSelector }] };
    expect(await request('PATCH', group, patch)).toMatchObject({ status: 200 });
  };
  await selecting({ matchLabels: { nobody: 'has-it' } });
  try {
    await plane.untilReviewed(0);
    return await work();
  } finally {
    await selecting({});
    await plane.untilReviewed(1);
  }
}

test('a Service gets a node port when it becomes a NodePort, and the port stays allocated when the Service becomes a ClusterIP', async () => {
  expect(await create('plain', {})).toMatchObject({ status: 201 });

  const changed: Reply = await request('PATCH', `${services}/plain`, { spec: { type: 'NodePort' } });

  const nodePort = String(changed.body.spec.ports?.[0]?.nodePort);
  expect(await takenIn(RANGE_KEYS.nodePorts)).toContain(nodePort);
  const allocated = { operation: 'UPDATE', nodePorts: [nodePort], clusterIPs: [] };
  expect(verdicts('allocated').at(-1)?.fields).toMatchObject(allocated);
  const back = await request('PATCH', `${services}/plain`, { spec: { type: 'ClusterIP' } });
  expect(back).toMatchObject({ status: 200, body: { spec: { ports: [{ port: 80 }] } } });
  expect(await takenIn(RANGE_KEYS.nodePorts)).toContain(nodePort);
});

test('an ExternalName cannot request the node port of another Service, and keeps its own node port when it becomes a NodePort', async () => {
  const [taken = ''] = await takenIn(RANGE_KEYS.nodePorts);
  const elsewhere = (nodePort: number) =>
    create('moved', { type: 'ExternalName', externalName: 'example.com', ports: [{ port: 80, nodePort }] });

  expect(await elsewhere(Number(taken))).toMatchObject({ status: 422 });
  expect(await elsewhere(30_444)).toMatchObject({ status: 201 });
  expect(await takenIn(RANGE_KEYS.nodePorts)).toContain('30444');
  const moved: Reply = await request('PATCH', `${services}/moved`, { spec: { type: 'NodePort' } });
  expect(nodePortsOf(moved.body)).toEqual(['30444']);
});

test('a Service gets an address of each family if it is created as dual-stack or becomes dual-stack later', async () => {
  const both = await create('both', { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv6'] });
  expect(both.body.spec.ipFamilies).toEqual(['IPv6', 'IPv4']);
  expect(await create('later', {})).toMatchObject({ status: 201 });
  const later: Reply = await request('PATCH', `${services}/later`, {
    spec: { ipFamilyPolicy: 'RequireDualStack' },
  });
  expect(later).toMatchObject({ status: 200, body: { spec: { ipFamilies: ['IPv4', 'IPv6'] } } });

  const taken = [...(await takenIn(RANGE_KEYS.primary)), ...(await takenIn(RANGE_KEYS.secondary))];
  expect(taken).toEqual(
    expect.arrayContaining([...(both.body.spec.clusterIPs ?? []), ...(later.body.spec.clusterIPs ?? [])]),
  );
});

test('a load balancer gets a health check port, and its TCP and UDP ports with the same number get the same node port', async () => {
  const ports = ['TCP', 'UDP'].map((protocol) => ({ name: protocol.toLowerCase(), port: 53, protocol }));
  const reply = await create('dns', { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports });

  expect(reply.status).toBe(201);
  const [tcp, udp, health] = nodePortsOf(reply.body);
  expect(tcp).toBe(udp);
  expect(await takenIn(RANGE_KEYS.nodePorts)).toEqual(expect.arrayContaining([tcp, health]));
});

test('the API server does not call the webhook for a Service without an address, or for a change of labels only', async () => {
  const before = plane.reviewed();

  await create('headless', { clusterIP: 'None' });
  await create('elsewhere', { type: 'ExternalName', externalName: 'example.com', ports: [] });
  await request('PATCH', `${services}/web`, { metadata: { labels: { a: 'b' } } });

  expect(plane.reviewed()).toBe(before);
});

test('if the API server calls the webhook again with the Service that the first call returned, nothing changes', async () => {
  const group = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  const { body } = await request<{ webhooks: object[] }>('GET', `${group}/zz-kube-bootstrap-controller`);
  const again = { metadata: { name: 'zzz-the-same-again' }, webhooks: body.webhooks };
  expect(await request('POST', group, again)).toMatchObject({ status: 201 });
  await plane.untilReviewed(2);

  expect(await create('twice', { type: 'NodePort' })).toMatchObject({ status: 201 });
  const generated = { metadata: { generateName: 'twice-' }, spec: { type: 'NodePort', ports: [{ port: 80 }] } };
  for (let time = 0; time < 2; time++) {
    const metadata = { name: expect.stringMatching(/^twice-[a-z2-9]{5}$/) };
    expect(await request('POST', services, generated)).toMatchObject({ status: 201, body: { metadata } });
  }
  const [address, other] = ['10.96.0.77', '10.96.0.78'];
  const metadata = { generateName: 'asks-' };
  const asking = (clusterIP: string) => ({ metadata, spec: { clusterIP, ports: [{ port: 80 }] } });
  expect(await request('POST', services, asking(address))).toMatchObject({ status: 201 });
  expect(await request('POST', services, asking(address))).toMatchObject({ status: 422 });
  expect(await request('POST', services, asking(other))).toMatchObject({ status: 201 });

  expect(await request('DELETE', `${group}/zzz-the-same-again`)).toMatchObject({ status: 200 });
});

test('after all reviews, the repairs report only a node port that may have leaked', async () => {
  const ips = await plane.handlers.run('cluster-ip-repair');
  const ports = await plane.handlers.run('node-port-repair');
  expect(ips).toMatchObject({ findings: [], errors: [] });
  expect(ports).toMatchObject({ findings: [expect.stringMatching(/^mayHaveLeaked: .* may have leaked/)], errors: [] });
});

test('each creation of an existing Service gets the status 409', async () => {
  expect(await create('again', { type: 'NodePort' })).toMatchObject({ status: 201 });
  const taken = await takenIn(RANGE_KEYS.nodePorts);
  for (let time = 0; time < 4; time++) {
    expect(await create('again', { type: 'NodePort' })).toMatchObject({ status: 409 });
  }
  expect(await takenIn(RANGE_KEYS.nodePorts)).toHaveLength(taken.length + 1);
});

const named = (name: string, port: number, protocol = 'TCP') => ({ name, port, protocol });
test.each<[string, string, readonly object[]]>([
  ['a name that is not a DNS label', 'A_B', [{ port: 80 }]],
  ['no ports', 'bad', []],
  ['a port 0', 'bad', [{ port: 0 }]],
  ['the same port twice', 'bad', [named('a', 80), named('b', 80)]],
  ['an invalid protocol', 'bad', [{ port: 80, protocol: 'ICMP' }]],
  ['two ports, one without a name', 'bad', [named('a', 80), { port: 81 }]],
  ['two ports with the same name', 'bad', [named('a', 80), named('a', 81)]],
  ['more ports than the webhook accepts', 'bad', Array.from({ length: 257 }, (_, at) => named(`p${at}`, at + 1))],
])('nothing is allocated for a Service with %s, because the API server refuses it', async (_what, name, ports) => {
  const before = [await takenIn(RANGE_KEYS.primary), await takenIn(RANGE_KEYS.nodePorts)];
  const body = { metadata: { name }, spec: { type: 'NodePort', ports } };
  expect(await request('POST', services, body)).toMatchObject({ status: 422 });
  expect([await takenIn(RANGE_KEYS.primary), await takenIn(RANGE_KEYS.nodePorts)]).toEqual(before);
});

test('an API server retries a review that the webhook refuses with 503 during a flood of wrong tokens, and the Service is created', async () => {
  await plane.restartInFlood();
  const before = plane.world.telemetry.lines.length;

  expect(await create('during-a-flood', {})).toMatchObject({ status: 201 });

  const lines = plane.world.telemetry.lines.slice(before).filter(({ fields }) => fields['cluster'] === CLUSTER);
  expect(lines).toMatchObject([{ fields: { statusCode: 503 } }, { message: 'admission: allocated' }]);
});

test('if the webhook does not answer, only headless Services and changes without an allocation succeed', async () => {
  await plane.endWebhook();

  const message = expect.stringContaining('failed calling webhook "services.kube-bootstrap-controller.io"');
  expect(await create('alone', {})).toMatchObject({ status: 500, body: { message } });
  expect(await create('headless-alone', { clusterIP: 'None' })).toMatchObject({ status: 201 });
  const labelled = await request('PATCH', `${services}/web`, { metadata: { labels: { c: 'd' } } });
  expect(labelled).toMatchObject({ status: 200 });
});
