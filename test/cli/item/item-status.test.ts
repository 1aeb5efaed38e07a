import { describe, expect, test } from '@jest/globals';
import { placeOf } from '../../../cli/item/item-place.ts';
import { type ItemFacts, type ItemStatus, itemStatus } from '../../../cli/item/item-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import type { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import type { StoredRange } from '../../../lib/cluster/stored-range.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';

const NOW_MS = Date.UTC(2026, 0, 2);
const NONE = new Uint8Array(0);
const INTERVAL_MS = 600_000;
/** The least time between two strikes. */
const APART_MS = (INTERVAL_MS * 2) / 3;

const SPEC: Partial<ClusterSpec> = {
  allocator: 'table',
  mode: 'enforce',
  serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/64'],
  intervalSeconds: { ...aClusterSpec().intervalSeconds, 'cluster-ip-repair': INTERVAL_MS / 1000 },
};

/** .77 is bit 76. */
const BITS = fromBits([76]);

interface Setting {
  readonly spec?: Partial<ClusterSpec>;
  readonly stored?: Partial<StoredRange>;
  readonly facts?: Partial<ItemFacts>;
  readonly address?: string;
  readonly isSaved?: boolean;
}

function statusOf({
  spec: fields,
  stored: given,
  facts,
  address = '10.0.0.77',
  isSaved = true,
}: Setting = {}): ItemStatus {
  const spec = aClusterSpec({ ...SPEC, ...fields });
  const place = placeOf(spec, 'ip', address);
  const strikes = { once: NONE, twice: NONE };
  const range = place.range;
  const stored = { range, data: BITS, allocator: spec.allocator, generation: 3, strikes, holds: [], ...given };
  return itemStatus(
    {
      cluster: { spec, generation: 3, rangesGeneration: 3 },
      place,
      paused: false,
      ...(isSaved && { saved: { stored, savedAtMs: NOW_MS - 1000 } }),
      ...facts,
    },
    NOW_MS,
  );
}

describe('one address', () => {
  test.each<[string, Setting, Partial<ItemStatus>]>([
    ['is taken where its bit is set', {}, { state: 'taken', ready: true, band: 'dynamic', faults: [] }],
    ['is free where it is not', { stored: { data: NONE } }, { state: 'free' }],
    ['is in the static band below the reserved size', { address: '10.0.0.16' }, { band: 'static' }],
    ['is in the dynamic band above it', { address: '10.0.0.17' }, { band: 'dynamic' }],
    ['is not ready under an older generation', { stored: { generation: 2 } }, { ready: false, state: 'taken' }],
    [
      'is looked up in the range that is stored',
      { stored: { range: '10.0.0.64/26', data: fromBits([12]) } },
      { state: 'taken', ready: false },
    ],
    ['is unknown in a range that was never saved', { isSaved: false }, { state: 'unknown', ready: false }],
    [
      'is unknown after the usage bitmap of another allocator',
      { stored: { allocator: 'apiserver' } },
      { state: 'unknown' },
    ],
    [
      'is taken where the API servers allocate and a Service has it',
      {
        spec: { allocator: 'apiserver' },
        stored: { data: NONE },
        facts: { claims: { services: [{ service: 'a/b' }] } },
      },
      { state: 'taken', faults: [] },
    ],
    [
      'may be beyond a bitmap where the API servers allocate',
      { spec: { allocator: 'apiserver' }, address: 'fd00::ffff:ffff', facts: { claims: { services: [] } } },
      { state: 'free', band: 'dynamic' },
    ],
    [
      'is wrong with two Services',
      { facts: { claims: { services: [{ service: 'a/b' }, { service: 'a/c' }] } } },
      { faults: ['2 Services have it, and only one may'] },
    ],
  ])('%s', (_, setting, expected) => {
    expect(statusOf(setting)).toMatchObject(expected);
  });

  test('is wrong when a Service has what is free in the table', () => {
    expect(statusOf({ stored: { data: NONE }, facts: { claims: { services: [{ service: 'a/b' }] } } }).faults).toEqual([
      expect.stringContaining('a Service has it, and it is not allocated in the table'),
    ]);
  });
});

describe('a leak', () => {
  const struck = (strikes: Partial<StoredRange['strikes']>) => ({
    stored: { strikes: { once: NONE, twice: NONE, last: { atMs: NOW_MS - 1000, passId: 'p' }, ...strikes } },
  });

  test.each<[string, Setting, ItemStatus['leak']]>([
    ['is none without a strike', {}, undefined],
    [
      'is what no Service has',
      { facts: { claims: { services: [] } } },
      { strikes: 0, freedAtEarliestMs: NOW_MS + 2 * APART_MS },
    ],
    [
      'is freed two strikes after the first',
      struck({ once: BITS }),
      { strikes: 1, freedAtEarliestMs: NOW_MS - 1000 + 2 * APART_MS },
    ],
    [
      'is freed one strike after the second',
      struck({ twice: BITS }),
      { strikes: 2, freedAtEarliestMs: NOW_MS - 1000 + APART_MS },
    ],
    [
      'is none once a Service has it',
      { ...struck({ twice: BITS }), facts: { claims: { services: [{ service: 'a/b' }] } } },
      undefined,
    ],
    [
      'is not freed by passes that only observe',
      { ...struck({ once: BITS }), spec: { mode: 'observe' } },
      { strikes: 1 },
    ],
    ['is not freed while passes are paused', { ...struck({ once: BITS }), facts: { paused: true } }, { strikes: 1 }],
    [
      'is none that is held',
      {
        stored: { holds: [{ items: ['10.0.0.77'], owner: 'ci', takenUpBy: 'any' }] },
        facts: { claims: { services: [] } },
      },
      undefined,
    ],
  ])('%s', (_, setting, leak) => {
    expect(statusOf(setting).leak).toEqual(leak);
  });
});
