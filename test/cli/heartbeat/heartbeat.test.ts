import { expect, test } from '@jest/globals';
import { restAfter } from '../../../cli/heartbeat/agent.ts';
import type { ProbeReply } from '../../../lib/cluster/probe-reply.ts';
import { newLease, nextLease } from '../../../lib/leases/lease-states.ts';
import type { KeyValueTable } from '../../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../../lib/table/leases.ts';
import { Chance, Clock } from '../../simulation/clock.ts';
import { memoryTable } from '../../support/memory-table.ts';
import { A, B, type PassWorld, READY, SILENT, worldOf } from '../../support/pass-world.ts';

function aWorld(): PassWorld {
  return worldOf(A, B).answer(SILENT, B);
}

const goDown = (world: PassWorld) => world.deregister({ address: B, goingDown: true });

test('an API server with an agent is probed from the expiry of its lease until the next heartbeat', async () => {
  const world = aWorld().answer(READY, A, B);
  await world.heartbeat(B);
  await world.tick();
  await world.tick();
  expect([world.published(), (await world.lease(B))?.source]).toEqual([[A, B], 'probe']);
  await world.heartbeat(B);
  await world.tick();
  expect([world.probed.length, (await world.lease(B))?.source]).toEqual([1, 'agent']);
});

test('an API server with an agent is withdrawn for an hour when its host shuts down, and published again after the next heartbeat', async () => {
  const world = aWorld().answer(READY, A, B);
  await world.heartbeat(B, { leaseMs: 24 * 3_600_000 });
  await world.tick();
  expect(await goDown(world)).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  await world.tick();
  await world.tick(3_580_000);
  expect(world.published()).toEqual([A]);
  await goDown(world);
  expect((await world.heartbeat(B)).state).toBe('active');
  await world.tick(1_000);
  expect(world.published()).toEqual([A, B]);
});

test.each<[string, ProbeReply]>([
  ['gets no answer', SILENT],
  ['has no result', { kind: 'unknown', message: 'the probe was ended' }],
])('an agent whose probe %s does not change an active lease', async (_, reply) => {
  const world = aWorld();
  await world.heartbeat(B);
  const before = await world.lease(B);
  const { state } = await world.heartbeat(B, { probe: async () => reply });
  expect([state, await world.lease(B)]).toEqual(['down', before]);
});

test('an agent records in a withdrawn lease that its API server was down, and ends the withdrawal when the server answers', async () => {
  const world = aWorld();
  await world.heartbeat(B);
  await world.tick();
  await world.deregister({ address: B });
  for (const probe of [async () => READY, async () => SILENT]) {
    expect((await world.heartbeat(B, { probe })).state).toBe('withdrawn');
  }
  expect((await world.heartbeat(B)).state).toBe('active');
});

test('an API server stays withdrawn if it is deregistered while its agent probes it', async () => {
  const world = aWorld();
  await world.heartbeat(B);
  const ask = async () => {
    await goDown(world);
    return READY;
  };
  await world.tick();
  expect((await world.heartbeat(B, { probe: ask })).state).toBe('lost');
  await world.tick(1_000);
  expect(world.published()).toEqual([A]);
});

const EVERY_MS = 10_000;
const LEASE_MS = 15_000;

interface Contention {
  readonly puts: number;
  readonly lost: number;
  /** The longest time between two successful refreshes of one lease. */
  readonly longestGapMs: number;
}

/** Runs agents that start in the same second for five minutes. Each call of the table takes about `callMs`. */
async function contentionOf(agents: number, callMs: number): Promise<Contention> {
  const clock = new Clock();
  const { pick } = new Chance(agents);
  const random = () => pick(1_000) / 1_000;
  const nowMs = () => clock.nowMs;
  const countedFromMs = clock.nowMs + 60_000;
  const endMs = clock.nowMs + 300_000;
  const call = () => clock.wait(callMs * (0.6 + 0.8 * random()));
  const store = memoryTable({ nowMs });
  let puts = 0;
  let lost = 0;
  const table: KeyValueTable = {
    ...store,
    get: async (cluster, key) => {
      await call();
      return store.get(cluster, key);
    },
    put: async (item, previous) => {
      await call();
      const result = await store.put(item, previous);
      // Writes of the first minute are not counted, because all agents write at once when they start.
      if (clock.nowMs < countedFromMs) return result;
      puts += 1;
      lost += Number(result.outcome === 'lost');
      return result;
    },
  };
  const wait = (attempt: number) => clock.wait(random() * Math.min(20 * 2 ** attempt, 500));
  const gaps: number[] = [];
  const agent = async (address: string) => {
    let writtenAtMs: number | undefined;
    while (clock.nowMs < endMs) {
      const stored = await readLeases(table, 'demo');
      const lease = leaseOf(stored, address) ?? newLease(address);
      const answer = { answer: 'ready', source: 'agent', leaseMs: LEASE_MS, provesEnd: false } as const;
      const changes = new Map([[address, nextLease(lease, answer, nowMs())]]);
      const { written } = await changeLeases(table, 'demo', stored, changes, { wait });
      const isRefreshed = written.has(address);
      const isFirst = writtenAtMs === undefined;
      if (isRefreshed) gaps.push(clock.nowMs - (writtenAtMs ?? clock.nowMs));
      if (isRefreshed) writtenAtMs = clock.nowMs;
      await clock.wait(restAfter({ isRefreshed, isFirst, everyMs: EVERY_MS }, random));
    }
  };
  for (let index = 0; index < agents; index += 1) void agent(`10.0.0.${index + 1}`);
  await clock.run(() => false);
  return { puts, lost, longestGapMs: Math.max(...gaps) };
}

test('no lease expires if 32 agents start in the same second and each call of the table takes 75 ms', async () => {
  const { puts, lost, longestGapMs } = await contentionOf(32, 75);
  expect({ longestGapMs, isKept: longestGapMs < LEASE_MS }).toEqual({ longestGapMs, isKept: true });
  expect({ puts, lost, few: lost / puts < 0.2 }).toEqual({ puts, lost, few: true });
});

test('an agent waits for an interval after a refresh, for a part of an interval after its first refresh, and for at most a second after a lost write', () => {
  const rest = (isRefreshed: boolean, isFirst: boolean) =>
    restAfter({ isRefreshed, isFirst, everyMs: EVERY_MS }, () => 0.5);
  expect([rest(true, false), rest(true, true), rest(false, false)]).toEqual([EVERY_MS, EVERY_MS / 2, 750]);
});
