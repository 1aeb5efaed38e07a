import { describe, expect, test } from '@jest/globals';
import { ipAddressFault } from '../../../cli/item/claims.ts';
import { placeOf } from '../../../cli/item/item-place.ts';
import { type ItemFacts, type ItemStatus, itemStatus } from '../../../cli/item/item-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import type { ClusterSpec } from '../../../lib/cluster/cluster-spec.ts';
import type { StoredRange } from '../../../lib/range/stored-range.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';

const NONE = new Uint8Array(0);
const OF_ONE = { services: [{ service: 'a/b' }] };

const SPEC: Partial<ClusterSpec> = {
  allocator: 'table',
  mode: 'enforce',
  serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/64'],
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
  const stored = {
    range,
    data: BITS,
    allocator: spec.allocator,
    generation: 3,
    strikes,
    holds: [],
    unclaimed: [],
    ...given,
  };
  return itemStatus({
    cluster: { spec, generation: 3, rangesGeneration: 3 },
    place,
    ...(isSaved && { saved: { stored, savedAtMs: 1000 } }),
    ...facts,
  });
}

describe('one address', () => {
  test.each<[string, Setting, object]>([
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
      { spec: { allocator: 'apiserver' }, stored: { data: NONE }, facts: { claims: OF_ONE } },
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
    [
      'is wrong when a Service has what is free in the table',
      { stored: { data: NONE }, facts: { claims: OF_ONE } },
      { faults: [expect.stringContaining('a Service has it, and it is not allocated in the table')] },
    ],
  ])('%s', (_, setting, expected) => {
    expect(statusOf(setting)).toMatchObject(expected);
  });
});

describe('an item without a Service', () => {
  const struck = (strikes: Partial<StoredRange['strikes']>) => ({
    stored: { strikes: { once: NONE, twice: NONE, ...strikes } },
  });
  const ofNoService = { claims: { services: [] } };
  const held = { holds: [{ items: ['10.0.0.77'], owner: 'ci', takenUpBy: 'any' }] } as const;

  test.each<[string, Setting, ItemStatus['strikes']]>([
    ['is not known as one without a strike', {}, undefined],
    ['has no strike at first', { facts: ofNoService }, 0],
    ['has one strike', struck({ once: BITS }), 1],
    ['has two strikes', struck({ twice: BITS }), 2],
    ['is none once a Service has it', { ...struck({ twice: BITS }), facts: { claims: OF_ONE } }, undefined],
    ['is none that is held', { stored: held, facts: ofNoService }, undefined],
  ])('%s', (_, setting, strikes) => {
    expect(statusOf(setting).strikes).toBe(strikes);
  });
});

describe('the IPAddress of an address', () => {
  const services = [
    { service: 'shop/new', createdAtMs: 2 },
    { service: 'shop/old', createdAtMs: 1 },
  ];

  test.each([
    ['the older Service', 'shop/old', undefined],
    ['a newer Service', 'shop/new', 'its IPAddress belongs to shop/new, although shop/old is older'],
    ['a Service without it', 'shop/gone', 'its IPAddress belongs to shop/gone, which does not have it'],
  ])('may belong to %s', (_, parent, fault) => {
    expect(ipAddressFault({ services, ipAddress: { parent } })).toBe(fault);
    expect(ipAddressFault({ services })).toBeUndefined();
  });
});
