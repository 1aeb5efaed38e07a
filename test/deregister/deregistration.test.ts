import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { addressesIn, ENDPOINTS_REF, SLICE_REF } from '../../lib/cluster/published-objects.ts';
import { undoDeregister } from '../../lib/deregister/deregister.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { ClusterError, type ClusterErrorCode } from '../../lib/kubernetes/cluster-port.ts';
import { withdrawnUntil } from '../../lib/leases/lease.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { claimCluster, type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { leaseOf, readLeases } from '../../lib/table/leases.ts';
import { serversAt } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { putLease } from '../support/put-lease.ts';

const handler = deregistration();
const [ADDRESS, OTHER] = ['10.9.8.7', '10.9.8.8'] as const;
const ADDRESSES = [ADDRESS, OTHER];

async function aWorld(overrides: Parameters<typeof aDispatchWorld>[0] = {}): Promise<DispatchWorld> {
  const world = aDispatchWorld(overrides);
  await world.register({ apiServers: serversAt(ADDRESS, OTHER) });
  return world;
}

/** Invokes the deregister function for the address, in the cluster `demo`. */
function ask({ environment }: Pick<DispatchWorld, 'environment'>, fields: object = {}, remainingMs = 25_000) {
  const event = { cluster: 'demo', address: ADDRESS, ...fields };
  return handler(event, { getRemainingTimeInMillis: () => remainingMs, environment });
}

/** Returns the end of the withdrawal of the address in the table. */
async function endOfWithdrawal(world: DispatchWorld): Promise<number | undefined> {
  const lease = leaseOf(await readLeases(world.table, 'demo'), ADDRESS);
  return lease && withdrawnUntil(lease, 0);
}

test('the deregister function withdraws the address until the requested time, and logs the withdrawal', async () => {
  const world = await aWorld();
  const untilMs = world.clock.nowMs + 90 * 60_000;
  const answer = await ask(world, { untilMinutes: 90, lastOne: true });
  expect(answer).toMatchObject({ outcome: 'deregistered', untilMs, stillPublished: false });
  expect(await endOfWithdrawal(world)).toBe(untilMs);
  const line = { level: 'info', cluster: 'demo', address: ADDRESS, until: '2026-01-01T13:30:00.000Z' };
  expect(world.telemetry.logged('deregister: deregistered')).toMatchObject([line]);
  expect(world.telemetry.flushes.count).toBe(1);
});

test('the deregister function withdraws an address although the kubeconfig cannot be read', async () => {
  const connect = () => Promise.reject(new ClusterError('BadKubeconfig', 'cannot be read'));
  const world = await aWorld({ connect });
  const error = { code: 'BadKubeconfig', message: 'cannot be read' };
  expect(await ask(world, { lastOne: true })).toMatchObject({ outcome: 'deregistered', stillPublished: true, error });
  expect(await endOfWithdrawal(world)).toBeDefined();
  const line = { level: 'warn', errors: ['BadKubeconfig: cannot be read'] };
  expect(world.telemetry.logged('deregister: deregistered')).toMatchObject([line]);
});

test('the deregister function withdraws an address and returns at its deadline if the read of the kubeconfig does not end', async () => {
  const world = await aWorld({ connect: () => new Promise(() => {}) });
  const answer = ask(world, { lastOne: true });
  while ((await endOfWithdrawal(world)) === undefined) await turn();
  expect(world.deadlines.map(({ ms }) => ms)).toEqual([20_000, 20_500]);
  world.deadlines[0]?.expire();
  const error = { code: 'DeadlineExceeded', message: expect.stringContaining('kubeconfig of cluster demo') };
  expect(await answer).toMatchObject({ outcome: 'deregistered', stillPublished: true, error });
  expect(world.deadlines.every(({ cancelled }) => cancelled)).toBe(true);
});

test('the deregister function stops a second before its invocation ends', async () => {
  const world = await aWorld();
  await ask(world, { lastOne: true }, 5_000);
  expect(world.deadlines.map(({ ms }) => ms)).toEqual([4_000, 4_500]);
});

/** Returns a world of two live API servers, and the endpoints of the kubernetes Service in memory. */
async function aPublishedWorld() {
  const world = await aWorld();
  const cluster = world.cluster();
  for (const object of [anEndpoints(ADDRESSES), aSlice(ADDRESSES)]) cluster.place(object);
  for (const address of ADDRESSES) {
    await putLease(world.table, 'demo', { address, expiresAtMs: world.clock.nowMs + 15_000 });
  }
  const published = () => [ENDPOINTS_REF, SLICE_REF].flatMap((ref) => addressesIn(cluster.find(ref)));
  return { cluster, world, published };
}

/** Invokes the deregister function, and returns when it waits because its writes fail. */
async function aWaitingDeregistration(code: ClusterErrorCode | 'Conflict' = 'Conflict') {
  const { cluster, world, published } = await aPublishedWorld();
  cluster.beforeWrite = () => {
    if (code === 'Conflict') return { outcome: 'conflict' };
    throw new ClusterError(code, 'no answer');
  };
  const answer = ask(world);
  for (let turns = 0; turns < 1_000 && world.deadlines[2] === undefined; turns += 1) await turn();
  const [, , wait] = world.deadlines;
  /** Ends the wait. The next write succeeds. */
  const resume = () => {
    cluster.beforeWrite = undefined;
    wait?.expire();
    return answer;
  };
  return { world, published, answer, wait, resume };
}

test('if a control plane was moved, the deregister function changes the endpoints of the current control plane', async () => {
  const { world, published } = await aPublishedWorld();
  const former = memoryCluster([anEndpoints([OTHER])]);
  const { connect } = world.environment;
  const left = [{ kubernetes: former.port, controlPlane: { id: 'left', confirm: async () => false } }];
  const moving: Environment['connect'] = async (...args) => ({ ...(await connect(...args)), ...left.shift() });
  const environment = { ...world.environment, connect: moving };
  expect(await ask({ environment })).toMatchObject({ stillPublished: false });
  expect(published()).toEqual([OTHER, OTHER]);
});

const PASSING = ['Conflict', 'Throttled', 'Unavailable', 'DeadlineExceeded'] as const;
test.each(PASSING)('the deregister function retries every second while its writes fail with %s', async (code) => {
  const { published, wait, resume } = await aWaitingDeregistration(code);
  expect(wait?.ms).toBe(1_000);
  expect(await resume()).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  expect(published()).toEqual([OTHER, OTHER]);
});

test('after an undo of the deregistration, the deregister function makes no further attempt to remove the address', async () => {
  const { world, published, resume } = await aWaitingDeregistration();
  const { table, clock } = world;
  const { spec } = (await readCluster(table, 'demo')) as RegisteredCluster;
  // The clock of the user who undoes the deregistration is ahead.
  const nowMs = () => clock.nowMs + 1_500;
  await undoDeregister({ spec, table, address: ADDRESS, nowMs });
  expect(await resume()).toMatchObject({ outcome: 'refused', reason: 'undone' });
  expect(await endOfWithdrawal(world)).toBe(nowMs());
  expect(published()).toEqual([...ADDRESSES, ...ADDRESSES]);
});

test('the deregister function reports an address as still published if the function could not remove the address before the deadline', async () => {
  const { world, answer } = await aWaitingDeregistration();
  world.deadlines[0]?.expire();
  const error = { code: 'Conflict' };
  expect(await answer).toMatchObject({ outcome: 'deregistered', stillPublished: true, error });
  expect(await endOfWithdrawal(world)).toBeDefined();
});

test('the deregister function refuses a caller without a key of the cluster', async () => {
  const callerKeys = [createHash('sha256').update('a'.repeat(64)).digest('hex')];
  const world = await aWorld({ stack: 'ours' });
  await world.register({ callerKeys });
  const refusal = { outcome: 'refused', reason: 'callerRefused' };
  for (const key of [{}, { callerKey: 'b'.repeat(64) }]) {
    expect(await ask(world, { lastOne: true, ...key })).toMatchObject(refusal);
  }
  expect(await endOfWithdrawal(world)).toBeUndefined();
  expect(await ask(world, { lastOne: true, callerKey: 'a'.repeat(64) })).not.toMatchObject(refusal);
});

test('the deregister function refuses a cluster of another stack, and logs the refusal', async () => {
  const world = await aWorld({ stack: 'ours' });
  await claimCluster(world.table, 'demo', 'theirs');
  const refusal = { outcome: 'refused', reason: 'otherStack', message: expect.stringContaining('theirs') };
  expect(await ask(world, { lastOne: true })).toMatchObject(refusal);
  expect(world.telemetry.logged('deregister: refused')).toMatchObject([{ level: 'warn' }]);
  expect(await endOfWithdrawal(world)).toBeUndefined();
});

test('the error for a cluster that is not registered contains the name of the cluster', async () => {
  const asked = ask(await aWorld(), { cluster: 'nowhere' });
  await expect(asked).rejects.toMatchObject({ code: 'NotRegistered', message: expect.stringContaining('nowhere') });
});

test.each([
  { event: undefined, fault: 'the event is not of type object' },
  { event: { cluster: 'demo', address: ADDRESS, until: 5 }, fault: '"until" is not known' },
  { event: { 'detail-type': 'Scheduled Event' }, fault: '"detail-type" is not known' },
])('the event $event is refused: $fault', async ({ event, fault }) => {
  const { environment } = await aWorld();
  const asked = handler(event, { getRemainingTimeInMillis: () => 25_000, environment });
  await expect(asked).rejects.toMatchObject({ code: 'BadEvent', message: expect.stringContaining(fault) });
});
