import { expect, test } from '@jest/globals';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { updateCluster, withAllocationClosed } from '../../lib/table/cluster-registration.ts';
import { writeRunRecord } from '../../lib/table/run-records.ts';
import { anAdmissionWorld, anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { aRunRecord } from '../support/run-records.ts';

const INTERVALS_MS = 3 * 180_000;
const items: AllocateRequest['items'] = [{ range: 'serviceips', next: true }];
const NOT_READY = {
  code: 'NotReady',
  message: expect.stringMatching(
    /^no pass of cluster-ip-repair has succeeded within its last 3 intervals \(.+\), so the table may not know all Services: wait for the next pass, or run "kbctl run-once cluster-ip-repair demo"$/,
  ),
};

test.each([
  ['was last repaired more than three intervals ago', -INTERVALS_MS - 1],
  ['was last repaired in the future, by this clock', INTERVALS_MS + 1],
  ['was never repaired', undefined],
])('until a pass has succeeded, a table allocates nothing for requests if it %s', async (_, sinceMs) => {
  const world = await anAllocateWorld({ isRepaired: false });
  if (sinceMs !== undefined) await world.repair(world.clock.nowMs + sinceMs);
  const before = await world.items();
  expect(await world.ask({ items })).toMatchObject({ outcome: 'refused', error: NOT_READY });
  expect(await world.items()).toEqual(before);
  await world.repair(world.clock.nowMs - INTERVALS_MS);
  expect(await world.ask({ items })).toMatchObject({ outcome: 'done' });
});

test('after three intervals without a repair, a table still returns the stored answer to a repeated request, looks up items and releases items', async () => {
  const world = await anAllocateWorld({ isRepaired: false });
  await world.repair(world.clock.nowMs);
  const answer = await world.ask({ items });
  world.clock.nowMs += INTERVALS_MS + 1;
  expect(await world.ask({ items })).toEqual({ ...answer, replayed: true });
  const named: AllocateRequest['items'] = [{ range: 'serviceips', value: '10.0.0.17' }];
  const ask = (operation: 'lookUp' | 'release') => world.ask({ requestId: operation, operation, items: named });
  expect(await ask('lookUp')).toMatchObject({ items: [{ outcome: 'taken' }] });
  expect(await ask('release')).toMatchObject({ items: [{ outcome: 'released' }] });
});

test('after three intervals without a repair, a table allocates nothing for Services until a pass has succeeded', async () => {
  const world = await anAdmissionWorld({ isRepaired: false });
  await world.repair(world.clock.nowMs - INTERVALS_MS - 1);
  const refused = await world.ask();
  expect(refused).toMatchObject({ allowed: false, status: { code: 503 } });
  expect(await world.taken()).toEqual({});
  await world.repair(world.clock.nowMs);
  expect(await world.ask()).toMatchObject({ allowed: true });
  expect(Object.keys(await world.taken())).toEqual(['10.0.0.17']);
});

test('after a pass of cluster-ip-repair, a table allocates cluster IPs for Services, even if node-port-repair has not succeeded yet', async () => {
  const world = await anAdmissionWorld({ isRepaired: false });
  await writeRunRecord(world.table, 'demo', 'cluster-ip-repair', aRunRecord(world.clock.nowMs), undefined);
  expect(await world.ask()).toMatchObject({ allowed: true });
  expect(await world.ask({ name: 'ports', spec: { type: 'NodePort' } })).toMatchObject({ allowed: false });
});

test.each([
  ['serviceips', RANGE_KEYS.primary, 'serviceipallocations'],
  ['secondaryserviceips', RANGE_KEYS.secondary, 'serviceipallocations'],
  ['servicenodeports', RANGE_KEYS.nodePorts, 'servicenodeportallocations'],
] as const)('a closed range (%s) allocates nothing until a pass has saved it', async (range, key, resource) => {
  const world = await anAllocateWorld();
  await updateCluster(world.table, CLUSTER, withAllocationClosed);
  const next: AllocateRequest['items'] = [{ range, next: true }];
  const error = { code: 'NotReady', message: `cannot allocate resources of type ${resource} at this time` };
  expect(await world.ask({ items: next })).toMatchObject({ outcome: 'refused', error });
  await world.store(key, { generation: 2 });
  expect(await world.ask({ items: next })).toMatchObject({ outcome: 'done' });
});
