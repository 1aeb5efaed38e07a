import { expect, test } from '@jest/globals';
import { ClusterError, type ClusterPort, type LookUp } from '../../lib/kubernetes/cluster-port.ts';
import type { Lease } from '../../lib/leases/lease.ts';
import type { PassContext } from '../../lib/loops/pass.ts';
import { PASS_BUDGET_MS } from '../../lib/runtime/deadline.ts';
import { LEASES, readLeases } from '../../lib/table/leases.ts';
import { aHost, aServer } from '../support/a-cluster-spec.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { A, B, C, PassWorld, READY, SHUTTING_DOWN, SILENT, settled, worldOf } from '../support/pass-world.ts';

const HOST = 'api.example.com';
const DAY_MS = 24 * 3_600_000;

/** Runs a tick whose first write of the leases is not executed and has the outcome `unclear`. */
async function tickThatLoses(world: PassWorld): Promise<void> {
  const { put } = world.table;
  let isLost = true;
  const unclearOnce: typeof put = async (content, previous) => {
    if (!isLost || content.key !== LEASES) return put(content, previous);
    isLost = false;
    return { outcome: 'unclear' };
  };
  await world.tick(10_000, { table: { ...world.table, put: unclearOnce } });
  expect(isLost).toBe(false);
}

test('an address that is only in the slice stays published if it does not answer in the first pass', async () => {
  const world = worldOf(A, B, C).answer(SILENT, B);
  for (const object of [anEndpoints([A]), aSlice([A, B])]) world.cluster.place(object);
  const report = await world.tick();
  expect([world.published(), report.counts]).toMatchObject([[A, B, C], { addresses: 3 }]);
  expect(report.changes).toContain(`remembered ${B}, which is published: no answer: connect ECONNREFUSED`);
  await world.tick();
  expect(world.published()).toEqual([A, C]);
});

test('an address that is not ready in the slice is not published if it does not answer in the first pass', async () => {
  const world = worldOf(A, B).answer(SILENT, B);
  const notReady = { addresses: [B], conditions: { ready: false } };
  world.cluster.place(anEndpoints([A]));
  world.cluster.place({ ...aSlice([A]), endpoints: [...(aSlice([A]).endpoints ?? []), notReady] });
  await world.tick();
  expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
});

test('a published address without a lease is removed at once if its server reports a shutdown or the spec does not contain the address', async () => {
  const world = worldOf(A, B, C).answer(SHUTTING_DOWN, B);
  world.cluster.place(anEndpoints([A, B, C, '10.0.0.4']));
  await world.tick();
  expect(world.published()).toEqual([A, C]);
});

test('while a host name cannot be resolved, a published address to which the host name might resolve stays published', async () => {
  const world = new PassWorld({ apiServers: [aHost(HOST), aServer(C)] }).answer(READY, C);
  world.cluster.place(anEndpoints([A, C]));
  await world.ticks(2);
  expect(world.published()).toEqual([A, C]);
  world.records.set(HOST, [B]);
  await world.answer(READY, B).tick();
  expect(world.published()).toEqual([B, C]);
});

test('an address of two host names stays published if one host name no longer resolves to the address and the other host name cannot be resolved', async () => {
  const world = new PassWorld({ apiServers: [aHost('one.example'), aHost('two.example')] }).answer(READY, A, B, C);
  world.records.set('one.example', [A, B]).set('two.example', [A, C]);
  await world.tick();
  world.records.set('one.example', [B]).delete('two.example');
  await world.ticks(6);
  expect(world.published()).toEqual([A, B, C]);
  world.records.set('two.example', [C]);
  await world.ticks(2);
  expect(world.published()).toEqual([B, C]);
});

test('at most 32 published addresses without a lease are kept for an unresolved host name', async () => {
  const world = new PassWorld({ apiServers: [aHost(HOST), aServer(C)] }).answer(READY, C);
  world.cluster.place(anEndpoints([C, ...Array.from({ length: 100 }, (_, n) => `10.1.0.${n}`)]));
  await world.tick();
  const { leases } = await readLeases(world.table, world.spec.name);
  expect([leases.length, leases.filter(({ host }) => host === HOST).length]).toEqual([33, 32]);
});

/** Returns a world in which the restored table has this lease of B. */
async function restored(given: (nowMs: number) => Partial<Lease>): Promise<PassWorld> {
  const world = await settled();
  await world.setLease({ address: B, expiresAtMs: world.nowMs - 600_000, ...given(world.nowMs) });
  return world;
}
const missedTwice = (nowMs: number) => ({ misses: 2, missedAtMs: nowMs - 600_000, seenDown: true });
const withdrawnFor = (ms: number) => (nowMs: number) => ({ withdrawnUntilMs: nowMs + ms, seenDown: true });
const ENDED = withdrawnFor(-300_000);

async function deregisteredAgain(): Promise<PassWorld> {
  const world = await restored(ENDED);
  const withdrawnUntilMs = world.nowMs + 300_000;
  world.whileProbing = () => world.setLease({ address: B, withdrawnUntilMs });
  return world;
}

async function shutDown(): Promise<PassWorld> {
  const world = await settled();
  await world.answer(SHUTTING_DOWN, B).tick();
  return world.answer(READY, B);
}

async function firstPass(): Promise<PassWorld> {
  const world = worldOf(A, B, C);
  world.cluster.place(anEndpoints([A, B, C]));
  return world;
}

test.each([
  ['stays published if it was published before the first pass', firstPass, [A, B, C]],
  ['stays published if the withdrawal in its restored lease has ended', () => restored(ENDED), [A, B, C]],
  ['stays published if its restored lease has two misses', () => restored(missedTwice), [A, B, C]],
  ['is removed if its restored lease has an active withdrawal', () => restored(withdrawnFor(300_000)), [A, C]],
  ['is removed if it is deregistered again during the probes', deregisteredAgain, [A, C]],
  ['is not published if it was removed', shutDown, [A, C]],
])('if the new lease of an answering address cannot be written, the address %s', async (_, start, published) => {
  const world = await start();
  await tickThatLoses(world);
  expect(world.published()).toEqual(published);
});

const records = (many: number) => Array.from({ length: many }, (_, n) => `10.0.${n >> 8}.${n & 255}`).sort();

test('if name servers are slow, a tick still has enough time for probes, and for the reads and writes after the probes', async () => {
  const world = await settled(new PassWorld({ apiServers: [aHost(HOST), aServer(C)] }).answer(READY, C));
  const limits: number[] = [];
  const startDeadline = (ms: number) => {
    limits.push(ms);
    return { signal: ms < 3_000 ? AbortSignal.abort() : new AbortController().signal, cancel: () => {} };
  };
  const never = new Promise<undefined>(() => {});
  const lookUp: LookUp = async (_source, signal) => (signal?.aborted ? undefined : never);
  expect((await world.tick(10_000, { startDeadline, lookUp })).findings).toMatchObject([{ item: HOST }]);
  expect(world.published()).toEqual([C]);
  const [all = 0, lookUps = 0] = limits;
  expect(all).toBeLessThanOrEqual(PASS_BUDGET_MS['kubernetes-service'] - 3_000);
  expect(all - lookUps).toBeGreaterThanOrEqual(3_000);
});

test('the published addresses of a host name stay published while they answer, even if the host name now resolves to 100 addresses', async () => {
  const [one, other] = ['10.0.0.98', '10.0.0.99'];
  const world = new PassWorld({ apiServers: [aHost(HOST)] }).answer(READY, one, other);
  world.records.set(HOST, [one, other]);
  await settled(world);
  world.records.set(HOST, records(100));
  for (let tick = 0; tick < 4; tick += 1) {
    const report = await world.tick();
    expect(world.published()).toEqual([one, other]);
    expect(report.findings).toMatchObject([{ item: HOST, message: expect.stringContaining('resolves to 100 add') }]);
  }
  world.answer(SILENT, one).answer(READY, '10.0.0.50');
  await world.ticks(4);
  expect(world.published()).toEqual([other]);
  expect([world.probed.length, world.probed.some(({ url }) => url.includes(one))]).toEqual([32, false]);
});

test('a pass runs at most 16 probes at a time', async () => {
  const world = new PassWorld({ apiServers: [aHost(HOST)] });
  world.records.set(HOST, records(32));
  let [now, most] = [0, 0];
  const probe = async () => {
    now += 1;
    most = Math.max(most, now);
    await Promise.resolve();
    now -= 1;
    return SILENT;
  };
  await world.tick(10_000, { probe });
  expect(most).toBe(16);
});

const addresses = Array.from({ length: 40 }, (_, n) => `10.0.1.${n + 10}`);
const STILL_OPEN = { kind: 'unknown', message: 'the time for probes was over' } as const;

/**
 * Runs a tick in which each server that does not answer takes 3 s of the 5 to 6 s for probes. The first 16 have the result
 * silence, the next 16 have no result in time, and the others are not probed.
 */
async function tickInTime(world: PassWorld, pass: number): Promise<void> {
  let silent = 0;
  const probe: PassContext['probe'] = async ({ url }) => {
    if (silent >= 32) return STILL_OPEN;
    const answer = world.answers.get(new URL(url).hostname) ?? SILENT;
    if (answer !== SILENT) return answer;
    silent += 1;
    return silent <= 16 ? SILENT : STILL_OPEN;
  };
  await world.tick(10_000, { probe, passId: `pass-${pass}` });
}

test('if 39 of 40 servers do not answer, all 39 are removed; each server is added when it answers again', async () => {
  const world = await settled(worldOf(...addresses));
  const dead = addresses.slice(0, 39);
  world.answer(SILENT, ...dead);
  for (let pass = 0; pass < 12; pass += 1) await tickInTime(world, pass);
  expect(world.published()).toEqual(addresses.slice(39));
  world.answer(READY, ...dead.slice(-3));
  for (let pass = 12; pass < 24; pass += 1) await tickInTime(world, pass);
  expect(world.published()).toEqual(addresses.slice(36));
});

const LATE = { kind: 'unknown', message: 'this process was busy', late: true } as const;

test('a busy process does not remove an API server if every third answer is in time', async () => {
  const world = await settled();
  for (const reply of [LATE, LATE, READY, LATE, LATE, READY, LATE, LATE, READY]) {
    const { counts, findings } = await world.answer(reply, B).tick();
    expect([counts['lateProbes'], findings.length]).toEqual(reply === LATE ? [1, 1] : [undefined, 0]);
    expect(world.published()).toEqual([A, B, C]);
  }
});

test('a server that does not answer is removed if a server with an agent answers a probe', async () => {
  const world = worldOf(A, B, C);
  for (const address of [B, C]) await world.setLease({ address, source: 'agent', expiresAtMs: world.nowMs + DAY_MS });
  await world.tick();
  expect(world.probed).toHaveLength(1);
  world.answer(SILENT, A);
  await world.ticks(2);
  expect(world.published()).toEqual([B, C]);
  expect(await world.lease(B)).toMatchObject({ source: 'agent', misses: 0 });
});

test('a pass that removes an API server from the endpoints, or adds it again, writes an event on the kubernetes Service', async () => {
  const world = await settled(worldOf(A, B));
  const regarding = { name: 'kubernetes' };
  const note = expect.stringMatching(`^removed ${A} from the endpoints: `);
  const removed = { reason: 'ApiServerRemoved', note, regarding };
  expect((await world.answer(SHUTTING_DOWN, A).tick()).events).toMatchObject([removed]);
  expect((await world.tick()).events).toEqual([]);
  const added = { type: 'Normal', reason: 'ApiServerReturned', note: `added ${A} to the endpoints`, regarding };
  expect((await world.answer(READY, A).tick()).events).toMatchObject([added]);
});

const failing = (world: PassWorld): ClusterPort => {
  const fail = () => Promise.reject(new ClusterError('Unavailable', 'connect ECONNREFUSED 10.0.0.1:6443'));
  return { ...world.cluster.port, get: fail, list: fail };
};

test('until a pass can remove a dead server from the endpoints, passes report that the server is still published', async () => {
  const world = (await settled(worldOf(A, B))).answer(SILENT, A);
  const kubernetes = failing(world);
  await expect(world.tick(10_000, { kubernetes })).rejects.toThrow('ECONNREFUSED');
  const message = expect.stringContaining('10.0.0.1 is still published');
  const finding = { type: 'deadServerPublished', item: A, message };
  for (const report of await world.ticks(3, { kubernetes })) {
    expect(report).toMatchObject({ errors: [{ code: 'Unavailable' }], findings: [finding] });
  }
  const { changes, findings } = await world.tick();
  expect(findings).toEqual([]);
  expect(changes).toContainEqual(expect.stringMatching(/^removed 10\.0\.0\.1 from the endpoints/));
});

test('in mode observe, a pass fails if the Kubernetes API does not answer, and reports no dead server', async () => {
  const world = await settled(worldOf(A, B));
  world.answer(SILENT, A).change({ mode: 'observe' });
  const kubernetes = failing(world);
  for (let tick = 0; tick < 4; tick++) await expect(world.tick(10_000, { kubernetes })).rejects.toThrow('ECONNREFUSED');
});

test('a pass counts no active lease if no API server has ever answered', async () => {
  const world = worldOf(A, B).answer(SILENT, A, B);
  const report = await world.tick(10_000, { kubernetes: failing(world) });
  expect(report).toMatchObject({ counts: { activeLeases: 0 }, findings: [], errors: [{ code: 'Unavailable' }] });
});
