import { describe, expect, test } from '@jest/globals';
import { bitsOf, fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { Hold, HoldTerms } from '../../lib/range/hold.ts';
import { type StoredRange, sameRange } from '../../lib/range/stored-range.ts';
import { type Comparison, compareRange, startRebuild } from '../../lib/repair/compare-range.ts';
import { HOLD_END_MARGIN_MS, ipRange, made, portRange } from '../support/ranges.ts';
import { storedRange } from './repair-cluster.ts';
import { service } from './services.ts';

const NOW = 1_000_000;
/** The latest end of a hold that is over by every clock. */
const OVER = NOW - HOLD_END_MARGIN_MS;
const RANGE = '30000-30009';
const NONE = new Uint8Array(0);
const ANY: HoldTerms = { owner: 'team-a', takenUpBy: 'any', untilMs: NOW + 1, requestId: 'r1' };
const OWNERS: HoldTerms = { ...ANY, takenUpBy: 'owner' };

interface Given {
  readonly holds: readonly Hold[];
  /** Ports, by the Service that claims them. */
  readonly claims?: readonly (readonly [port: number, by: ServiceClaim])[];
  readonly stored?: Partial<StoredRange>;
  readonly range?: string;
}

function compared({ holds, claims = [], stored = {}, range = RANGE }: Given): Comparison {
  const held = holds.flatMap(({ items }) => items.map((item) => Number(item) - 30_000));
  const kept = storedRange({ range: RANGE, data: fromBits(held), holds, ...stored });
  const recorded = portRange(kept.range);
  expect(recorded.restore(kept)).toBeUndefined();
  const rebuild = startRebuild(kept, recorded, portRange(range));
  for (const [port, by] of claims) rebuild.claim(port, by);
  const turn = { passId: 'this', nowMs: NOW, intervalMs: 180_000, fromZero: false, controlPlane: 'c', mayFree: true };
  return compareRange(rebuild, { item: 'node port', range: 'port range' }, turn, 1);
}

const shown = ({ next, findings, counts }: Comparison) => ({
  taken: [...bitsOf(next.data)],
  struck: [...bitsOf(next.strikes.once), ...bitsOf(next.strikes.twice)],
  holds: next.holds,
  findings: findings.map(({ type }) => type),
  counts: { held: counts.held, holdsEnded: counts.holdsEnded, leaks: counts.leaks },
});

describe('a held item', () => {
  test.each<{ name: string; terms: HoldTerms }>([
    { name: 'until later', terms: ANY },
    { name: 'until now, by a clock that may be ahead of its owner’s', terms: { ...ANY, untilMs: OVER + 1 } },
    { name: 'for good', terms: { owner: 'team-a', takenUpBy: 'owner' } },
  ])('an item that is held $name and has no Service stays allocated, without a strike or a report', ({ terms }) => {
    const holds = [{ ...terms, items: ['30002', '30004'] }];
    const decided = compared({ holds });
    expect(shown(decided)).toEqual({
      taken: [2, 4],
      struck: [],
      holds,
      findings: [],
      counts: { held: 2, holdsEnded: 0, leaks: 0 },
    });
    expect(decided.changed).toBe(false);
  });

  test('a held item is freed at once when its hold is over and no Service has it, beside leaks that get their strike', () => {
    const holds = [
      { ...ANY, untilMs: OVER, items: ['30002', '30004'] },
      { ...ANY, items: ['30005'] },
    ];
    const decided = compared({ holds, stored: { data: fromBits([2, 4, 5, 6]) } });
    expect(shown(decided)).toEqual({
      taken: [5, 6],
      struck: [6],
      holds: [holds[1]],
      findings: ['mayHaveLeaked'],
      counts: { held: 1, holdsEnded: 2, leaks: 0 },
    });
    expect(decided.changed).toBe(true);
  });

  const owners = service('s', { holdOwner: 'team-a' });
  test.each<{ name: string; terms: HoldTerms; by: ServiceClaim }>([
    { name: 'any Service', terms: ANY, by: service('s') },
    { name: 'a Service of its owner', terms: OWNERS, by: owners },
    { name: 'a Service of another when the hold is over', terms: { ...OWNERS, untilMs: OVER }, by: service('s') },
  ])('a held item is claimed by $name: the hold ends for that item and continues for the others', ({ terms, by }) => {
    const holds = [
      { ...terms, untilMs: NOW + 1, items: ['30005'] },
      { ...terms, items: ['30002'] },
    ];
    const decided = compared({ holds, claims: [[30_002, by]] });
    expect(shown(decided)).toEqual({
      taken: [2, 5],
      struck: [],
      holds: [holds[0]],
      findings: [],
      counts: { held: 1, holdsEnded: 0, leaks: 0 },
    });
  });

  test('a held item keeps its other items when a Service claims one', () => {
    const decided = compared({ holds: [{ ...ANY, items: ['30002', '30003'] }], claims: [[30_003, service('s')]] });
    expect(decided.next.holds).toEqual([{ ...ANY, items: ['30002'] }]);
  });

  test.each([{ holdOwner: 'team-b' }, {}])('is reported when a Service that may not claim it has it: %j', (label) => {
    const holds = [{ ...OWNERS, items: ['30002'] }];
    const decided = compared({ holds, claims: [[30_002, service('s', label)]] });
    expect(decided.findings).toEqual([
      {
        type: 'heldByAnother',
        message:
          'the node port 30002 for service a/s is held by team-a, and the Service does not have its label. Label it "kube-bootstrap-controller/hold-owner: team-a", and the next pass ends the hold; or recreate the Service',
        item: '30002',
        service: 'a/s',
      },
    ]);
    expect(shown(decided)).toMatchObject({ taken: [2], holds, counts: { held: 1 } });
    expect([...bitsOf(decided.proved)]).toEqual([2]);
  });

  test('a held item is taken again when its bit was lost', () => {
    const holds = [{ ...ANY, items: ['30002'] }];
    expect(shown(compared({ holds, stored: { data: NONE } }))).toMatchObject({ taken: [2], holds });
  });

  test('moves to another range by its address, and is reported and dropped when that has no room for it', () => {
    const holds = [
      { ...ANY, items: ['30002', '30008'] },
      { ...ANY, untilMs: OVER, items: ['30003', '30009'] },
    ];
    const decided = compared({ holds, range: '30005-30014' });
    expect(shown(decided)).toEqual({
      taken: [3],
      struck: [],
      holds: [{ ...ANY, items: ['30008'] }],
      findings: ['other'],
      counts: { held: 1, holdsEnded: 1, leaks: 0 },
    });
    expect(decided.findings[0]?.message).toBe(
      'the node port 30002 is held by team-a and is not in 30005-30014, the range that the cluster spec has now: its hold ends',
    );
  });

  test('an address can be held, and an invalid text is dropped', () => {
    const holds = [{ ...ANY, items: ['fd00::a', 'nonsense'] }];
    const stored = storedRange({ range: 'fd00::/120', data: fromBits([9]), holds });
    const recorded = ipRange('fd00::/120');
    recorded.restore(stored);
    const rebuild = startRebuild(stored, recorded, ipRange('fd00::/120'));
    const turn = { passId: 'this', nowMs: NOW, intervalMs: 180_000, fromZero: false, controlPlane: 'c', mayFree: true };
    const { next, bitOf } = compareRange(rebuild, { item: 'cluster IP', range: 'service CIDR' }, turn, 1);
    expect(next.holds).toEqual([{ ...ANY, items: ['fd00::a'] }]);
    expect([bitOf('fd00::a'), bitOf('FD00:0::a'), bitOf('fd00::'), bitOf('x')]).toEqual([9, 9, undefined, undefined]);
    expect(made(recorded).itemOf('fd00:0::A')).toBe('fd00::a');
  });
});

describe('two stored ranges', () => {
  const range = storedRange({ range: RANGE, data: fromBits([2]), holds: [{ ...ANY, items: ['30002'] }] });
  test.each<[string, Partial<StoredRange>, boolean]>([
    ['the same hold in another object', { holds: [{ ...ANY, items: ['30002'] }] }, true],
    ['no hold', { holds: [] }, false],
    ['the hold of another', { holds: [{ ...ANY, owner: 'b', items: ['30002'] }] }, false],
    ['a longer hold', { holds: [{ ...ANY, untilMs: NOW + 2, items: ['30002'] }] }, false],
    ['a hold of another request', { holds: [{ ...ANY, requestId: 'r2', items: ['30002'] }] }, false],
    ['a hold of one more', { holds: [{ ...ANY, items: ['30002', '30003'] }] }, false],
  ])('differ if one of them has %s: %#', (_, changed, same) => {
    expect(sameRange(range, { ...range, ...changed })).toBe(same);
  });
});
