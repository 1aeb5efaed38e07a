import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { answerShape } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { updateCluster, withMode, withOwner } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { ANSWER_SCHEMA } from '../../tools/json-schemas.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { found } from '../support/found.ts';
import { schemaFaults } from '../support/json-schema-check.ts';
import { failingPuts } from '../support/table-through.ts';

const IP = 'serviceips';
const IPV6 = 'secondaryserviceips';
const PORT = 'servicenodeports';
const ip = (value: string) => ({ range: IP, value }) as const;
const port = (value: number) => ({ range: PORT, value }) as const;
const NEXT_IP = { range: IP, next: true } as const;
const NEXT_IPV6 = { range: IPV6, next: true } as const;
const UNTIL = '2026-01-01T12:15:00.000Z';
const HELD = { owner: 'r1', until: UNTIL, takenUpBy: 'any' };
const MINUTE_MS = 60_000;
const KEY = 'a'.repeat(64);

const release = (...items: AllocateRequest['items']) => ({ operation: 'release', items }) as const;

test('a request fails and changes no item if its stored answer is corrupt', async () => {
  const world = await anAllocateWorld();
  await world.ask({ items: [NEXT_IP] });
  const stored = found(await world.table.get(CLUSTER, 'requests/r1'));
  await world.table.put({ ...stored, value: { ...Object(stored.value), answer: '{"outcome":"perhaps"}' } }, stored);
  const before = await world.items();
  const error = { code: 'Corrupt', message: expect.stringMatching(/requests\/r1.*its answer is not valid/) };
  await expect(world.ask({ items: [NEXT_IP] })).rejects.toMatchObject(error);
  expect(await world.items()).toEqual(before);
});

test('a request allocates with one write in each range, and its answer lists the items in the order of the request', async () => {
  const world = await anAllocateWorld();
  const writes: string[] = [];
  const put: KeyValueTable['put'] = (content, previous) => {
    writes.push(content.key);
    return world.table.put(content, previous);
  };
  const items = [port(30_001), NEXT_IPV6, ip('10.0.0.1'), { range: PORT, next: true, count: 2 } as const];
  expect(await world.ask({ items }, { ...world.table, put })).toEqual({
    requestId: 'r1',
    cluster: CLUSTER,
    operation: 'allocate',
    outcome: 'done',
    items: [
      { range: PORT, value: 30_001, outcome: 'allocated', hold: HELD },
      { range: IPV6, value: 'fd00::101', outcome: 'allocated', hold: HELD },
      { range: IP, value: '10.0.0.1', outcome: 'allocated', hold: HELD },
      { range: PORT, value: 30_016, outcome: 'allocated', hold: HELD },
      { range: PORT, value: 30_017, outcome: 'allocated', hold: HELD },
    ],
  });
  const { secondary, primary, nodePorts } = RANGE_KEYS;
  expect(writes).toEqual(['requests/r1', secondary, primary, nodePorts, 'requests/r1']);
  const taken = ['10.0.0.1', 'fd00::101', '30001', '30016', '30017'];
  expect(await world.taken()).toEqual(Object.fromEntries(taken.map((item) => [item, 'r1'])));
});

test.each([
  ['2026-02-01T00:00:00+01:00', '2026-01-31T23:00:00.000Z', { untilMs: Date.parse('2026-01-31T23:00:00Z') }],
  ['forever', 'forever', {}],
] as const)('a request to allocate holds canonical addresses for the owner until %s', async (until, shown, end) => {
  const world = await anAllocateWorld();
  const terms = { owner: 'team-a', takenUpBy: 'owner' } as const;
  expect(await world.ask({ items: [{ range: IPV6, value: 'FD00:0::0:7' }], hold: { ...terms, until } })).toMatchObject({
    items: [{ value: 'fd00::7', hold: { ...terms, until: shown } }],
  });
  const { holds } = await world.stored(RANGE_KEYS.secondary);
  expect(holds).toEqual([{ ...terms, ...end, requestId: 'r1', items: ['fd00::7'] }]);
});

test('a request that is repeated within a day gets the same answer and writes nothing, even in mode observe', async () => {
  const world = await anAllocateWorld();
  const first = await world.ask({ items: [NEXT_IP] });
  await world.ask({ requestId: 'r2', ...release(ip('10.0.0.17')) });
  const before = await world.items();
  world.clock.nowMs += 24 * 60 * MINUTE_MS - 1;
  expect(await world.ask({ items: [NEXT_IP] })).toEqual({ ...first, replayed: true });
  expect(await world.ask({ items: [NEXT_IP], dryRun: true })).toEqual({ ...first, replayed: true, dryRun: true });
  await updateCluster(world.table, CLUSTER, withMode('observe'));
  expect(await world.ask({ items: [NEXT_IP] })).toEqual({ ...first, replayed: true });
  expect(await world.ask({ requestId: 'r3', items: [NEXT_IP] })).toMatchObject({ error: { code: 'ObserveOnly' } });
  expect(await world.items()).toEqual(before);
  await updateCluster(world.table, CLUSTER, withMode('enforce'));
  world.clock.nowMs += 1;
  expect(await world.ask({ items: [NEXT_IP] })).not.toHaveProperty('replayed');
});

test.each<[string, Partial<AllocateRequest>, string]>([
  ['a value outside its range', { items: [ip('10.0.1.1')] }, 'NotInRange'],
  ['one value twice', { items: [ip('10.0.0.1'), ip('10.0.0.1')] }, 'AlreadyAllocated'],
  ['a hold that has expired', { items: [NEXT_IP], hold: { owner: 'a', until: '2026-01-01T12:00:00Z' } }, 'BadHold'],
])('a request for %s is refused', async (_, request, code) => {
  const world = await anAllocateWorld();
  expect(await world.ask(request)).toMatchObject({ outcome: 'refused', error: { code } });
  expect(await world.taken()).toEqual({});
});

test('if a range has too few free items, a request is refused and holds nothing', async () => {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits(Array.from({ length: 253 }, (_, bit) => bit)) });
  const error = { code: 'Full', message: 'range is full: 1 free, 2 requested' };
  const refused = { range: IP, outcome: 'refused' };
  const answer = await world.ask({ items: [{ ...NEXT_IP, count: 2 }] });
  expect(answer).toMatchObject({ outcome: 'refused', error });
  expect(answer.items).toEqual([refused, { ...refused, error }]);
  expect((await world.stored(RANGE_KEYS.primary)).holds).toEqual([]);
});

test.each<[string, Parameters<typeof anAllocateWorld>[0], Partial<AllocateRequest>, string, string]>([
  ['no cluster has its name', {}, { cluster: 'dem' }, 'NotRegistered', 'cluster dem is not registered'],
  [
    'the cluster’s own API servers allocate',
    { spec: { allocator: 'apiserver' } },
    {},
    'NotSupported',
    'cluster demo has "allocator: apiserver": this function connects to no cluster, hold cluster IPs with "kbctl allocate ip"',
  ],
  [
    'there is no secondary range',
    { spec: { serviceClusterIPRanges: ['10.0.0.0/24'] } },
    { items: [NEXT_IPV6] },
    'NoSecondaryRange',
    'cluster demo has one range of cluster IPs, 10.0.0.0/24: it has no secondaryserviceips',
  ],
  [
    'another stack owns the cluster',
    { environment: { stack: 'ours' } },
    {},
    'OtherStack',
    'cluster demo belongs to the stack theirs: invoke the allocate function of that stack',
  ],
])('a request is refused when %s, and nothing is written', async (_, options, request, code, message) => {
  const world = await anAllocateWorld(options);
  // The owner of a cluster matters only to a function that belongs to a stack.
  await updateCluster(world.table, CLUSTER, withOwner('theirs'));
  const before = await world.items();
  const answer = await world.ask({ items: [NEXT_IP], ...request });
  expect(answer).toMatchObject({ outcome: 'refused', items: [{ outcome: 'refused' }], error: { code, message } });
  expect(await world.items()).toEqual(before);
});

test('a caller without a key of the cluster cannot allocate in that cluster, and no answer or item contains the key', async () => {
  const callerKeys = [createHash('sha256').update(KEY).digest('hex')];
  const world = await anAllocateWorld({ environment: { stack: 'ours' }, spec: { callerKeys } });
  const before = await world.items();
  for (const operation of ['allocate', 'release', 'lookUp'] as const) {
    const items = operation === 'allocate' ? [NEXT_IP] : [ip('10.0.0.9')];
    for (const callerKey of [undefined, 'k'.repeat(64)]) {
      const asked = { operation, items, ...(callerKey !== undefined && { callerKey }) };
      expect(await world.ask(asked)).toMatchObject({ outcome: 'refused', error: { code: 'CallerRefused' } });
    }
  }
  expect(await world.items()).toEqual(before);
  const answer = await world.ask({ items: [NEXT_IP], callerKey: KEY });
  expect(answer).toMatchObject({ outcome: 'done' });
  expect(JSON.stringify([answer, await world.items(), world.telemetry.lines])).not.toContain(KEY);
});

test('a request is refused if another request used its id within a day', async () => {
  const world = await anAllocateWorld();
  await world.ask({ items: [NEXT_IP] });
  const before = await world.items();
  for (const other of [{ items: [NEXT_IP, NEXT_IP] }, release(ip('10.0.0.17'))]) {
    expect(await world.ask({ ...other, items: [...other.items] })).toMatchObject({
      outcome: 'refused',
      error: { code: 'RequestIdTaken', message: expect.stringMatching(/another request to cluster demo/) },
    });
  }
  expect(await world.items()).toEqual(before);
});

test('a request is refused if an earlier request with the same id still holds items after a day, so that nothing is allocated twice', async () => {
  const world = await anAllocateWorld();
  await world.ask({ items: [NEXT_IP], hold: { owner: 'a', until: 'forever' } });
  world.clock.nowMs += 25 * 60 * MINUTE_MS;
  const before = await world.items();
  expect(await world.ask({ items: [NEXT_IP], hold: { owner: 'a', until: 'forever' } })).toMatchObject({
    outcome: 'refused',
    error: { code: 'RequestIdTaken', message: expect.stringMatching(/still holds items in cluster demo/) },
  });
  expect(await world.items()).toEqual(before);
});

test.each<[string, (world: AllocateWorld) => Promise<unknown>]>([
  ['in mode observe', ({ table }) => updateCluster(table, CLUSTER, withMode('observe'))],
  ['after three intervals without a repair', async ({ clock }) => (clock.nowMs += 10 * MINUTE_MS)],
])(
  'if an unfinished request is repeated %s, it is not refused, because it might hold items; the error asks the caller to repeat it later',
  async (_, close) => {
    const request = { items: [ip('10.0.0.1'), port(30_002)] };
    const world = await anAllocateWorld({ isRepaired: false });
    await world.repair(world.clock.nowMs);
    const table = failingPuts(world.table, 'Unavailable', ({ key }) => key === RANGE_KEYS.nodePorts);
    const resumes = /^Unavailable: request r1 was not finished, invoke it again .* it resumes where this one ended\. /;
    await expect(world.ask(request, table)).rejects.toThrow(resumes);
    await close(world);
    await expect(world.ask(request)).rejects.toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('was not finished, invoke it again with the same requestId'),
    });
    expect(await world.taken()).toEqual({ '10.0.0.1': 'r1' });
  },
);

test('the answer to a release from several ranges states for each item whether it was released or refused', async () => {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits([0]) });
  const losing: KeyValueTable = {
    ...world.table,
    put: async (content, previous) => {
      const written = await world.table.put(content, previous);
      if (content.key === RANGE_KEYS.primary) await world.store(RANGE_KEYS.nodePorts, { range: '30000-30063' });
      return written;
    },
  };
  expect(await world.ask(release(ip('10.0.0.1'), port(30_001)), losing)).toMatchObject({
    outcome: 'refused',
    items: [{ outcome: 'released' }, { outcome: 'refused', error: { code: 'MismatchedRange' } }],
    error: { code: 'MismatchedRange', message: 'the provided range does not match the current range' },
  });
});

test('a look-up returns the state of each item, and writes nothing', async () => {
  const world = await anAllocateWorld();
  const hold = { owner: 'team-a', until: 'forever', takenUpBy: 'owner' } as const;
  await world.ask({ items: [ip('10.0.0.1')], hold });
  await world.store(RANGE_KEYS.nodePorts, { data: fromBits([17]) });
  const before = await world.items();
  const items = [port(30_017), ip('010.0.0.1'), ip('10.0.0.2'), ip('10.0.0.255'), port(80)];
  const outside = { outcome: 'notInRange', error: { code: 'NotInRange', message: expect.any(String) } };
  const answer = await world.ask({ requestId: 'r2', operation: 'lookUp', items });
  expect(answer.outcome).toBe('done');
  expect(answer.items).toEqual([
    { range: PORT, value: 30_017, outcome: 'taken' },
    { range: IP, value: '10.0.0.1', outcome: 'taken', hold: { ...hold, requestId: 'r1' } },
    { range: IP, value: '10.0.0.2', outcome: 'free' },
    { range: IP, value: '10.0.0.255', ...outside },
    { range: PORT, value: 80, ...outside },
  ]);
  expect(await world.items()).toEqual(before);
});

test('a look-up is answered in mode observe, and refused if the API servers allocate', async () => {
  const request: Partial<AllocateRequest> = { operation: 'lookUp', items: [ip('10.0.0.1')] };
  const observed = await anAllocateWorld({ spec: { mode: 'observe' } });
  expect(await observed.ask(request)).toMatchObject({ outcome: 'done' });
  const foreign = await anAllocateWorld({ spec: { allocator: 'apiserver' } });
  expect(await foreign.ask(request)).toMatchObject({ outcome: 'refused', error: { code: 'NotSupported' } });
});

test.each<[string, Partial<AllocateRequest>]>([
  ['of a successful request', { items: [NEXT_IP, ip('10.0.0.1')] }],
  ['of a refused request', { items: [NEXT_IP, ip('10.0.1.1')] }],
  ['of a release', release(ip('10.0.0.3'))],
])('a dry run %s returns the same answer as the request, and writes nothing', async (_, request) => {
  const world = await anAllocateWorld();
  await world.store(RANGE_KEYS.primary, { data: fromBits([2]) });
  const before = await world.items();
  const tried = await world.ask({ ...request, dryRun: true });
  expect(await world.items()).toEqual(before);
  expect(tried).toEqual({ ...(await world.ask(request)), dryRun: true });
});

test('an invocation logs one line and the metrics of the allocation', async () => {
  const world = await anAllocateWorld();
  await world.ask({ items: [{ ...NEXT_IP, count: 2 }] });
  expect(world.telemetry.invocations).toEqual([{ loop: 'allocate' }]);
  const fields = { cluster: CLUSTER, request: 'r1', operation: 'allocate', items: 2, retries: 0 };
  expect(world.telemetry.lines).toEqual([{ level: 'info', message: 'allocate: done', fields }]);
  expect(world.telemetry.counters).toEqual({ allocations: 2, allocationRetries: 0 });
});

test('the metrics count refusals by their code, and count neither replays nor dry runs', async () => {
  const world = await anAllocateWorld();
  const request = { items: [ip('10.0.1.1')] };
  await world.ask({ ...request, dryRun: true });
  await world.ask(request);
  await world.ask(request);
  const reason = expect.stringMatching(/^NotInRange: the provided IP \(10\.0\.1\.1\) is not in the valid range/);
  const fields = { cluster: CLUSTER, request: 'r1', operation: 'allocate', items: 1, retries: 0, reason };
  const line = (how: object) => ({ level: 'warn', message: 'allocate: refused', fields: { ...fields, ...how } });
  expect(world.telemetry.lines).toEqual([line({ dryRun: true }), line({}), line({ replayed: true })]);
  const counted = { allocations: 0, allocationRetries: 0, 'allocationsRefused{type=NotInRange}': 1 };
  expect(world.telemetry.counters).toEqual(counted);
});

test('the log contains the fault of an invalid event, but not the whole event', async () => {
  const world = await anAllocateWorld();
  await expect(world.send({ owner: 'x'.repeat(10_240) })).rejects.toMatchObject({ code: 'BadEvent' });
  expect(world.telemetry.lines).toMatchObject([{ level: 'error', message: 'invocation failed' }]);
  expect(JSON.stringify(world.telemetry.lines).length).toBeLessThan(2_000);
});

test.each<[string, Partial<AllocateRequest>]>([
  ['to a successful request', { items: [NEXT_IP, port(30_001)] }],
  ['to a refused request', { items: [NEXT_IP, port(80)] }],
  ['to a dry run', { items: [NEXT_IP], dryRun: true }],
  ['to a release', release(ip('10.0.0.9'), port(80))],
  ['to a look-up', { operation: 'lookUp', items: [ip('10.0.0.9'), port(80)] }],
  ['for a cluster that does not exist', { cluster: 'none', items: [NEXT_IP] }],
])('an answer %s matches docs/allocate-answer.schema.json, and is read back unchanged', async (_, request) => {
  const world = await anAllocateWorld();
  for (const answer of [await world.ask(request), await world.ask(request)]) {
    expect(schemaFaults(ANSWER_SCHEMA, answer)).toEqual([]);
    expect(answerShape.parse(JSON.parse(JSON.stringify(answer)))).toEqual(answer);
  }
});
