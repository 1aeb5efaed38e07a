import { describe, expect, test } from '@jest/globals';
import { SLICE_REF } from '../../lib/cluster/published-objects.ts';
import { REFUSAL } from '../../lib/endpoints/endpoint-findings.ts';
import { withholdWrites } from '../../lib/kubernetes/withhold-writes.ts';
import { aHost, aServer } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { A, B, C, PassWorld, READY, SHUTTING_DOWN, SILENT, settled, worldOf } from '../support/pass-world.ts';
import { withdraw } from '../support/put-lease.ts';

const HOST = 'api.example.com';

/** Expects these addresses in the Endpoints and in the slice. */
function expectPublished(world: PassWorld, ...addresses: readonly string[]): void {
  expect([world.published(), world.inSlice()]).toEqual([addresses, addresses]);
}

describe('a tick of the kubernetes-service loop', () => {
  test('in an empty cluster, a tick creates the Service, the Endpoints and a slice, and publishes the addresses of the servers that answer', async () => {
    const world = worldOf(A, B, C).answer(SILENT, C);
    const report = await world.tick();
    expect(world.cluster.writes).toEqual(['create services', 'create endpoints', 'create endpointslices']);
    expectPublished(world, A, B);
    expect(report).toMatchObject({ errors: [], findings: [], counts: { addresses: 3, activeLeases: 2 } });
    expect(report.changes).toEqual([
      `took lease ${A}: answered 200`,
      `took lease ${B}: answered 200`,
      'created service default/kubernetes: 10.0.0.1',
      `created endpoints default/kubernetes: ${A} ${B}`,
      `created endpointslice default/kubernetes: ${A} ${B}`,
    ]);
  });

  test('if the probe of an API server uses another port than the published port, the first tick that finds the server reports the published port', async () => {
    const url = 'https://127.0.0.1:32764/readyz';
    const world = new PassWorld({ apiServers: [aServer(A, { url }), aServer(B)] }).answer(READY, '127.0.0.1', B);
    const { changes, findings } = await world.tick();
    const ofA = `took lease ${A}: answered 200, probed at ${url} and published with port 6443`;
    expect(changes.slice(0, 2)).toEqual([ofA, `took lease ${B}: answered 200`]);
    expect([findings, (await world.tick()).changes]).toEqual([[], []]);
  });

  test('a tick without changes makes three reads and no writes in the cluster, one read and one write of the leases, and returns the same state', async () => {
    const world = await settled();
    const { state } = await world.tick();
    const report = await world.tick();
    expect(world.cluster.reads.toSorted()).toEqual(['get endpoints', 'get services', 'list endpointslices']);
    expect(world.cluster.writes).toEqual([]);
    expect(world.tableCalls).toEqual(['get', 'put']);
    expect(state).toBeDefined();
    expect(report).toMatchObject({ changes: [], findings: [], errors: [], state });
  });

  test('a tick removes the address of a killed server at the second miss, and publishes the address again when the server answers', async () => {
    const world = await settled();
    world.answer(SILENT, B);
    await world.tick();
    expect(world.published()).toEqual([A, B, C]);
    const report = await world.tick();
    expectPublished(world, A, C);
    expect(report.changes).toContain(`updated endpoints default/kubernetes: ${A} ${C}`);
    await world.answer(READY, B).tick();
    expectPublished(world, A, B, C);
  });

  const shutDownB = (world: PassWorld) => world.answer(SHUTTING_DOWN, B);
  const removeB = (world: PassWorld) => world.change({ apiServers: [aServer(A), aServer(C)] });
  const deregisterB = ({ table, nowMs }: PassWorld) =>
    withdraw(table, 'demo', { address: B, untilMs: 2_000_000_000, nowMs });
  test.each<[string, (world: PassWorld) => unknown, RegExp]>([
    ['whose server shuts down', shutDownB, /^its lease expired at \S+Z; answered 500: it is shutting/],
    ['that was deregistered', deregisterB, /^it is deregistered until 1970-01-24T03:33:20\.000Z$/],
    ['that was removed from the spec', removeB, /^it is not an API server of the spec$/],
  ])('a tick reports why it removes, or would remove, an address %s', async (_, leave, reason) => {
    const world = await settled();
    await leave(world);
    const kubernetes = withholdWrites(world.cluster.port, () => undefined);
    const { wouldWrite } = await world.tick(10_000, { kubernetes });
    expect(wouldWrite).toEqual([expect.stringMatching(new RegExp(`^remove ${B} from the endpoints: `))]);
    expect(wouldWrite?.[0]?.split('endpoints: ')[1]).toMatch(reason);
    const { changes } = await world.tick(0);
    const removed = changes.filter((change) => change.startsWith('removed ') && change.includes('endpoints'));
    expect(removed).toEqual(wouldWrite?.map((line) => line.replace('remove', 'removed')));
  });

  test('if no lease is valid any more, a tick removes no address, and reports why no API server is live', async () => {
    const world = await settled();
    world.answer(SILENT, A, B).answer({ kind: 'status', status: 503, body: '' }, C);
    expect(await world.tick()).toMatchObject({ errors: [], counts: { activeLeases: 3 } });
    const report = await world.tick();
    expect([world.published(), world.cluster.writes, report.counts['activeLeases']]).toEqual([[A, B, C], [], 0]);
    const message = `${REFUSAL}: ${A} no answer: connect ECONNREFUSED; ${B} no answer: connect ECONNREFUSED; ${C} answered 503. The endpoints stay unchanged. Start an API server, or make its probe URL reachable from here (apiServers[].probe)`;
    expect(report.errors).toMatchObject([{ code: 'NoLiveLease', message }]);
    expect(report.findings).toContainEqual({ type: 'noLiveLease', message });
  });

  test('a tick creates the Service before any server answers, and reports why the endpoints stay empty', async () => {
    const world = new PassWorld({ apiServers: [aServer(A)] });
    expect(await world.tick()).toMatchObject({ errors: [{ code: 'NoLiveLease' }] });
    expect([world.cluster.writes, await world.lease(A)]).toEqual([['create services'], undefined]);
  });

  test('if the slice of the kubernetes Service has lost its label, a tick finds the slice by name, and adds the label again', async () => {
    const world = await settled();
    const slice = aSlice([A, B, C]);
    world.cluster.place({ ...slice, metadata: { namespace: 'default', name: 'kubernetes' } });
    await world.tick();
    expect(world.cluster.writes).toEqual(['update endpointslices']);
    expect(world.cluster.find(SLICE_REF)?.metadata.labels).toEqual(slice.metadata.labels);
  });

  test('with the reconciler "none", a tick creates only the Service, and neither probes servers nor reads leases', async () => {
    const world = worldOf(A, B, C).change({ endpoints: { reconciler: 'none' } });
    expect(await world.tick()).toMatchObject({ changes: ['created service default/kubernetes: 10.0.0.1'], errors: [] });
    expect([world.probed, world.tableCalls, world.cluster.writes]).toEqual([[], [], ['create services']]);
  });
});

const FORBIDDEN = { kind: 'status', status: 403, body: '' } as const;
const withCredential = () =>
  new PassWorld({ apiServers: [A, B].map((address) => aServer(address, { authenticate: true })) }).answer(READY, A, B);

test('if only some servers accept the credential, a server is published only after it accepts the credential', async () => {
  const world = withCredential().answer(FORBIDDEN, B);
  const { findings } = await world.tick();
  expectPublished(world, A);
  expect(findings).toMatchObject([{ type: 'other', item: B, message: expect.stringContaining('answered 403') }]);
  world.answer(READY, B);
  await world.tick();
  expectPublished(world, A, B);
});

test('if every server answers 403 to the credential, all servers count as alive', async () => {
  const world = withCredential().answer(FORBIDDEN, A, B);
  await world.tick();
  expectPublished(world, A, B);
});

test('if a host name resolves only to a loopback address, the tick does not probe or publish that address, reports it, and keeps the published addresses', async () => {
  const record = '127.0.0.1';
  const world = new PassWorld({ apiServers: [aHost(HOST), aServer(C)] }).answer(READY, A, B, C, record);
  world.records.set(HOST, [A, B]);
  await settled(world);
  world.records.set(HOST, [record]);
  for (let tick = 0; tick < 4; tick++) {
    const report = await world.tick();
    const unfit = expect.stringContaining(`${HOST} resolves to ${record}, which Endpoints must not`);
    const known = expect.stringContaining(`its known addresses stay: ${A} ${B}`);
    expect(report.findings).toMatchObject([
      { item: record, message: unfit },
      { item: HOST, message: known },
    ]);
    expect([world.published(), world.probed.length]).toEqual([[A, B, C], 3]);
  }
});

test('a tick reads the leases again before it reports that no lease is valid', async () => {
  const world = await settled();
  await world.answer(SILENT, A, B, C).tick();
  const { port } = world.cluster;
  const get: typeof port.get = async (ref) => {
    if (ref.kind === 'Endpoints') await world.heartbeat(B);
    return port.get(ref);
  };
  const report = await world.tick(10_000, { kubernetes: { ...port, get } });
  expect(report).toMatchObject({ errors: [], counts: { activeLeases: 3 } });
});

test('if another writer creates the Endpoints during a tick, only the next tick corrects them and creates the slice', async () => {
  const world = worldOf(A, B, C);
  world.beforeNext('create Endpoints', () => world.cluster.place(anEndpoints([A])));
  expect(await world.tick()).toMatchObject({ errors: [{ code: 'AlreadyExists' }] });
  expect([world.published(), world.inSlice()]).toEqual([[A], []]);
  await world.tick();
  expectPublished(world, A, B, C);
});

test('if another writer creates the slice during a tick, the tick does not change that slice and reports no error', async () => {
  const world = worldOf(A, B, C);
  world.beforeNext('create EndpointSlice', () => world.cluster.place(aSlice([A])));
  expect(await world.tick()).toMatchObject({ errors: [] });
  expect([world.published(), world.inSlice()]).toEqual([[A, B, C], [A]]);
});

test('a tick deletes a slice of another address type only if the slice has not changed since the tick read it', async () => {
  const world = await settled();
  world.cluster.remove(SLICE_REF);
  world.cluster.place({ ...aSlice([A]), addressType: 'IPv6' });
  world.cluster.beforeWrite = (verb) => (verb === 'delete' ? { outcome: 'conflict' } : undefined);
  expect(await world.tick()).toMatchObject({ changes: [], errors: [{ code: 'Conflict' }] });
  world.cluster.beforeWrite = undefined;
  const created = `created endpointslice default/kubernetes: ${A} ${B} ${C}`;
  expect((await world.tick()).changes).toEqual([
    'deleted endpointslice default/kubernetes of address type IPv6',
    created,
  ]);
});

test('if the API server refuses the Endpoints, the tick reports the message of the API server and does not write the slice', async () => {
  const world = worldOf(A, B, C);
  const message = 'may not be in the loopback range (127.0.0.0/8, ::1/128)';
  world.cluster.beforeWrite = (_verb, { kind }) => (kind === 'Endpoints' ? { outcome: 'invalid', message } : undefined);
  expect((await world.tick()).errors).toMatchObject([{ code: 'Invalid', message: expect.stringContaining(message) }]);
  expect(world.cluster.writes).toEqual(['create services']);
});
