import { expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Hold,
  type HoldTerms,
  holdOn,
  holdsByItem,
  sameHolds,
  withHold,
  withoutHolds,
} from '../../lib/range/hold.ts';
import { holdIn, ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';

const TERMS: HoldTerms = { owner: 'team-a', takenUpBy: 'any' };

const item = fc.constantFrom('1', '2', '3', '4', '5', '6');
const takenUpBy = fc.constantFrom('any' as const, 'owner' as const);
const optional = { untilMs: fc.constantFrom(1, 2), requestId: fc.constantFrom('r', 's') };
const fields = { owner: fc.constantFrom('a', 'b'), takenUpBy, ...optional };
const terms = fc.record(fields, { requiredKeys: ['owner', 'takenUpBy'] });
/** Generates steps. Each step holds items with the given terms, or releases them if it has no terms. */
const steps = fc.array(fc.tuple(fc.uniqueArray(item, { maxLength: 4 }), fc.option(terms)), { maxLength: 12 });

function heldAfter(all: readonly (readonly [string[], HoldTerms | null])[]): readonly Hold[] {
  return all.reduce<readonly Hold[]>(
    (holds, [items, on]) => (on === null ? withoutHolds(holds, items) : withHold(holds, items, on)),
    [],
  );
}

test('every held item is in exactly one hold, with the owner, end and other terms that were last set for the item, and no two holds have the same terms', () => {
  fc.assert(
    fc.property(steps, (all) => {
      const last = new Map<string, HoldTerms>();
      for (const [items, on] of all) {
        for (const each of items) {
          if (on === null) last.delete(each);
          else last.set(each, on);
        }
      }
      const holds = heldAfter(all);
      expect(new Set(holdsByItem(holds).keys())).toEqual(new Set(last.keys()));
      for (const [each, on] of last) expect(holdOn(holds, each)).toMatchObject(on);
      expect(holds.flatMap((hold) => hold.items)).toHaveLength(last.size);
      expect(holds.every((hold) => hold.items.length > 0)).toBe(true);
      const texts = holds.map(({ items: _, ...on }) => JSON.stringify(on, Object.keys(on).sort()));
      expect(new Set(texts).size).toBe(holds.length);
    }),
  );
});

test('sameHolds ignores the order of holds and items, and returns false if one item has another hold', () => {
  fc.assert(
    fc.property(steps, item, terms, (all, changed, on) => {
      const holds = heldAfter(all);
      const reversed = holds.toReversed().map((hold) => ({ ...hold, items: hold.items.toReversed() }));
      expect(sameHolds(holds, reversed)).toBe(true);
      const others = withHold(holds, [changed], { ...on, owner: 'c' });
      expect(sameHolds(holds, others)).toBe(false);
      expect(sameHolds(others, holds)).toBe(false);
      expect(sameHolds(withoutHolds(others, [changed]), withoutHolds(holds, [changed]))).toBe(true);
    }),
  );
});

test('a comparison of two holds ends at the first difference, so that thousands of holds are listed quickly', () => {
  const requestId = jest.fn(() => 'r');
  const other = Object.defineProperty({ ...TERMS, owner: 'b', items: ['1'] }, 'requestId', { get: requestId });
  expect(withHold([other], ['2'], TERMS)).toHaveLength(2);
  expect(requestId).not.toHaveBeenCalled();
});

const STORED = { owner: 'shop', takenUpBy: 'any', untilMs: 1_800_000_000_123, requestId: 'r-1' } as const;

test('an IPAddress stores the owner, the end and the request id of a hold, and which Services are allowed to claim the address', () => {
  expect(holdIn(ipAddressOfHold('10.0.0.5', STORED))).toEqual({ ...STORED, items: ['10.0.0.5'] });
  expect(holdIn(ipAddressOfHold('fd00::5', TERMS))).toEqual({ ...TERMS, items: ['fd00::5'] });
});

test('the IPAddress of a held address references no Service, and its labels contain the family, the manager, the owner and the request id', () => {
  expect(ipAddressOfHold('10.0.0.5', STORED)).toMatchObject({
    metadata: {
      labels: {
        'ipaddress.kubernetes.io/ip-family': 'IPv4',
        'ipaddress.kubernetes.io/managed-by': 'kube-bootstrap-controller',
        'kube-bootstrap-controller/hold-owner': 'shop',
        'kube-bootstrap-controller/hold-request': 'r-1',
      },
      annotations: { 'kube-bootstrap-controller/hold-until': '2027-01-15T08:00:00.123Z' },
    },
    spec: { parentRef: { group: 'kube-bootstrap-controller', resource: 'holds', name: 'shop' } },
  });
});

test('a hold with an invalid end never ends, and an IPAddress of another manager is no hold', () => {
  const { metadata, ...object } = ipAddressOfHold('10.0.0.5', STORED);
  const annotations = { 'kube-bootstrap-controller/hold-until': 'soon' };
  expect(holdIn({ ...object, metadata: { ...metadata, annotations } })).not.toHaveProperty('untilMs');
  const labels = { ...metadata.labels, 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };
  expect(holdIn({ ...object, metadata: { ...metadata, labels } })).toBeUndefined();
  expect(holdIn({ metadata: { name: '10.0.0.5' } })).toBeUndefined();
});
