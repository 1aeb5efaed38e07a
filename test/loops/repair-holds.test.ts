import { expect, test } from '@jest/globals';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { HoldTerms } from '../../lib/range/hold.ts';
import { listing, RepairCluster } from '../repair/repair-cluster.ts';
import { withAddresses, withNodePorts } from '../repair/services.ts';
import { HOLD_END_MARGIN_MS } from '../support/ranges.ts';

const { primary: PRIMARY, secondary: SECONDARY, nodePorts: PORTS } = RANGE_KEYS;
const ANY: HoldTerms = { owner: 'team-a', takenUpBy: 'any' };

test('a pass counts the held items of each range, and reports how many items it freed because their holds ended', async () => {
  const cluster = new RepairCluster({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] });
  const over = { ...ANY, untilMs: cluster.nowMs - HOLD_END_MARGIN_MS };
  await cluster.store(PRIMARY, {
    range: '10.0.0.0/24',
    data: fromBits([0, 1, 2]),
    holds: [
      { ...ANY, items: ['10.0.0.1'] },
      { ...over, items: ['10.0.0.2'] },
    ],
  });
  await cluster.store(SECONDARY, {
    range: 'fd00::/112',
    data: fromBits([0]),
    holds: [{ ...ANY, items: ['fd00::1'] }],
  });
  cluster.services = [withAddresses('a', '10.0.0.3', 'fd00::1')];
  const report = await cluster.pass(clusterIpRepair);
  expect(report).toMatchObject({
    changes: [
      'saved ranges/serviceips: 2 of 254 taken in 10.0.0.0/24, 1 held, 1 freed after their hold',
      'saved ranges/secondaryserviceips: 1 of 65535 taken in fd00::/112',
    ],
    findings: [],
    counts: { held: 1, holdsEnded: 1, secondaryHeld: 0, secondaryHoldsEnded: 0, leaks: 0 },
  });
  expect((await cluster.stored(SECONDARY))?.holds).toEqual([]);
});

test('a pass in mode observe reports the range that it would save, and leaves every hold unchanged', async () => {
  const cluster = new RepairCluster({ mode: 'observe' });
  const holds = [{ ...ANY, untilMs: cluster.nowMs - HOLD_END_MARGIN_MS, items: ['30001'] }];
  await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
  const before = await cluster.table.get('test', PORTS);
  expect(await cluster.pass(nodePortRepair)).toMatchObject({ changes: [], counts: { holdsEnded: 1 } });
  expect(cluster.wouldWrite).toEqual(['save ranges/servicenodeports: 0 taken in 30000-32767, 1 freed']);
  expect(await cluster.table.get('test', PORTS)).toEqual(before);
});

test('a pass saves a range without holds if the API servers allocate', async () => {
  const cluster = new RepairCluster({ allocator: 'apiserver' });
  await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds: [{ ...ANY, items: ['30001'] }] });
  await cluster.pass(nodePortRepair);
  expect((await cluster.stored(PORTS))?.holds).toEqual([]);
});

test('a pass reports how to end the hold of a port that a Service without the right label uses, and frees nothing', async () => {
  const cluster = new RepairCluster();
  const holds = [{ ...ANY, takenUpBy: 'owner' as const, items: ['30001'] }];
  await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
  const service = withNodePorts('a', 30_001);
  cluster.services = [service];
  const { findings } = await cluster.pass(nodePortRepair);
  const [, owner = ''] =
    /Label it "kube-bootstrap-controller\/hold-owner: (.+?)"/.exec(findings[0]?.message ?? '') ?? [];
  expect(findings[0]?.message).not.toMatch(/release/);
  cluster.services = [{ ...service, holdOwner: owner }];
  expect(await cluster.pass(nodePortRepair)).toMatchObject({ findings: [], counts: { held: 0 } });
  expect(await cluster.stored(PORTS)).toMatchObject({ data: fromBits([1]), holds: [] });
});

test('a pass ends a hold only if the hold had expired before the pass read the range', async () => {
  const cluster = new RepairCluster();
  const holds = [{ ...ANY, untilMs: cluster.nowMs + 1 - HOLD_END_MARGIN_MS, items: ['30001'] }];
  await cluster.store(PORTS, { range: '30000-32767', data: fromBits([1]), holds });
  const kubernetes = listing(() => {
    cluster.nowMs += 10;
    return [];
  });
  await cluster.pass(nodePortRepair, { kubernetes });
  expect(await cluster.stored(PORTS)).toMatchObject({ data: fromBits([1]), holds });
  await cluster.pass(nodePortRepair);
  expect(await cluster.stored(PORTS)).toMatchObject({ data: new Uint8Array(0), holds: [] });
});
