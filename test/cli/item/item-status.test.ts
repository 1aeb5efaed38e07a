import { expect, test } from '@jest/globals';
import { ipAddressFault, ipAddressOf } from '../../../cli/item/claims.ts';
import { itemPlaceOf } from '../../../cli/item/item-place.ts';
import { type ItemFacts, type ItemStatus, itemStatus } from '../../../cli/item/item-status.ts';
import { fromBits } from '../../../lib/allocator/snapshot-bytes.ts';
import type { IPAddressRecord } from '../../../lib/cluster/kubernetes-objects.ts';
import type { StoredRange } from '../../../lib/range/stored-range.ts';
import type { ClusterSpec } from '../../../lib/spec/cluster-spec.ts';
import { aClusterSpec } from '../../support/a-cluster-spec.ts';
import { aStoredRange } from '../../support/a-fleet-status.ts';

const NONE = new Uint8Array(0);
const OF_ONE = { services: [{ service: 'a/b', createdAtMs: 1 }] };

const SPEC: Partial<ClusterSpec> = { allocator: 'table', serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/64'] };

/** The bitmap in which only the address 10.0.0.77 is allocated. */
const BITS = fromBits([76]);

interface Setting {
  readonly spec?: Partial<ClusterSpec>;
  readonly stored?: Partial<StoredRange>;
  readonly facts?: Partial<ItemFacts>;
  readonly address?: string;
  readonly isSaved?: boolean;
}

function statusOf(setting: Setting = {}): ItemStatus {
  const { spec: fields, stored: given, facts, address = '10.0.0.77', isSaved = true } = setting;
  const spec = aClusterSpec({ ...SPEC, ...fields });
  const place = itemPlaceOf(spec, 'ip', address);
  const { range } = place;
  const stored = aStoredRange([], { range, data: BITS, allocator: spec.allocator, generation: 3, ...given });
  return itemStatus({
    cluster: { spec, generation: 3, rangesGeneration: 3 },
    place,
    ...(isSaved && { saved: { stored, item: { updatedAtMs: 1000 } } }),
    ...facts,
  });
}

const ofApiServers = { allocator: 'apiserver' } as const;
test.each<[string, Setting, object]>([
  ['is in the static band below the reserved size', { address: '10.0.0.16' }, { band: 'static' }],
  ['is in the dynamic band above the reserved size', { address: '10.0.0.17' }, { band: 'dynamic' }],
  ['is not ready if its range is of an older generation', { stored: { generation: 2 } }, { ready: false }],
  [
    'is looked up in the stored range, even if the spec has another range',
    { stored: { range: '10.0.0.64/26', data: fromBits([12]) } },
    { state: 'taken', ready: false },
  ],
  ['has an unknown state if the usage bitmap is of another allocator', { stored: ofApiServers }, { state: 'unknown' }],
  [
    'is taken if the API servers allocate and a Service has the address',
    { spec: ofApiServers, stored: { data: NONE }, facts: { claims: OF_ONE } },
    { state: 'taken', faults: [] },
  ],
  [
    'is found even if its range is too large for a usage bitmap, if the API servers allocate',
    { spec: ofApiServers, address: 'fd00::ffff:ffff', facts: { claims: { services: [] } } },
    { state: 'free', band: 'dynamic' },
  ],
  [
    'has no save time if the API servers allocate and the stored usage bitmap does not contain the address',
    { spec: ofApiServers, stored: { range: '10.0.0.0/26' } },
    expect.not.objectContaining({ savedAtMs: expect.anything() }),
  ],
])('an address %s', (_, setting, expected) => {
  expect(statusOf(setting)).toMatchObject(expected);
});

const struck = (strikes: Partial<StoredRange['strikes']>) => ({
  stored: { strikes: { once: NONE, twice: NONE, ...strikes } },
});
const ofNoService = { claims: { services: [] } };
const held = { holds: [{ items: ['10.0.0.77'], owner: 'ci', takenUpBy: 'any' }] } as const;

test.each<[string, Setting, ItemStatus['strikes']]>([
  ['has no known strikes if Services were not read', {}, undefined],
  ['has zero strikes at first', { facts: ofNoService }, 0],
  ['has one strike', struck({ once: BITS }), 1],
  ['has two strikes', struck({ twice: BITS }), 2],
  ['has no strikes once a Service has it', { ...struck({ twice: BITS }), facts: { claims: OF_ONE } }, undefined],
  ['has no strikes while it is held', { stored: held, facts: ofNoService }, undefined],
])('an item %s', (_, setting, strikes) => {
  expect(statusOf(setting).strikes).toBe(strikes);
});

const services = [
  { service: 'shop/new', createdAtMs: 2 },
  { service: 'shop/old', createdAtMs: 1 },
];

function ipAddress(parent: string, fields: Partial<IPAddressRecord> = {}) {
  const [namespace = '', name = ''] = parent.split('/');
  const labels = { family: 'IPv4', managedBy: 'ipallocator.k8s.io' };
  const identity = { name: '10.0.0.77', uid: 'u', resourceVersion: '1', createdAtMs: 0 };
  const parentRef = { group: '', resource: 'services', namespace, name };
  return ipAddressOf({ ...identity, ...labels, parent: parentRef, ...fields });
}

const gateway = { group: 'g.io', resource: 'gateways', namespace: 'n', name: 'gw' };
const wrongLabels = 'the labels of its IPAddress are not those of API servers';
const ofGateway = 'its IPAddress belongs to gateways.g.io n/gw, although shop/new has it';
test.each([
  ['the older Service', ipAddress('shop/old'), undefined],
  ['a newer Service', ipAddress('shop/new'), 'its IPAddress belongs to shop/new, although shop/old is older'],
  ['a Service without the address', ipAddress('a/gone'), 'its IPAddress belongs to a/gone, which does not have it'],
  ['a Service, but with wrong labels', ipAddress('shop/old', { family: 'IPv6' }), wrongLabels],
  ['a Gateway', ipAddress('', { managedBy: 'x', parent: gateway }), ofGateway],
])('the check of an IPAddress recognizes that the IPAddress belongs to %s', (_, record, fault) => {
  expect(ipAddressFault({ services, ipAddress: record })).toBe(fault);
  expect(ipAddressFault({ services })).toBeUndefined();
});

test('the missing IPAddress of a Service is a fault if API servers allocate with IPAddresses', () => {
  const fault = 'shop/new has it without an IPAddress: it can be allocated a second time';
  expect(ipAddressFault({ services, isRecordRead: true })).toBe(fault);
  expect(ipAddressFault({ services: [], isRecordRead: true })).toBeUndefined();
});

test('an address is taken if its IPAddress belongs to a deleted Service or to another manager, but only an IPAddress of a deleted Service is a fault', () => {
  const spec = { allocator: 'apiserver' } as const;
  const orphan = { services: [], ipAddress: ipAddress('shop/gone') };
  expect(statusOf({ spec, stored: { data: NONE }, facts: { claims: orphan } })).toMatchObject({
    state: 'taken',
    faults: ['its IPAddress belongs to shop/gone, which does not have it'],
  });
  const foreign = { services: [], ipAddress: ipAddress('', { managedBy: 'x', parent: gateway }) };
  expect(statusOf({ spec, facts: { claims: foreign } })).toMatchObject({ state: 'taken', faults: [] });
});

const STOCK_SPEC = aClusterSpec({ allocator: 'apiserver' });
const servedBy = (...cidrs: readonly string[]) => {
  const family = cidrs[0]?.includes(':') ? ('IPv6' as const) : ('IPv4' as const);
  const sums = [{ family, networks: cidrs.length, used: 0, capacity: 9 }];
  return { sums, networks: cidrs.map((cidr) => ({ name: 'kubernetes', ready: true, used: 0, cells: '', cidr })) };
};

test('an address is looked up in the ServiceCIDR that contains it', () => {
  const place = itemPlaceOf(STOCK_SPEC, 'ip', '10.5.0.9', servedBy('fd00::/64', '10.5.0.0/24'));
  expect(place).toMatchObject({ range: '10.5.0.0/24', key: 'ranges/secondaryserviceips' });
  expect(() => itemPlaceOf(STOCK_SPEC, 'ip', '10.5.0.9')).toThrow('is not in the valid range');
});

test('the error for an address outside every ServiceCIDR lists the ServiceCIDRs of its family and not the range of the spec', () => {
  const served = servedBy('10.96.0.0/16', 'fd00::/108', '10.5.0.0/28');
  expect(() => itemPlaceOf(STOCK_SPEC, 'ip', '10.5.0.200', served)).toThrow('valid IPs is 10.96.0.0/16, 10.5.0.0/28');
  expect(() => itemPlaceOf(STOCK_SPEC, 'ip', 'fd01::1', served)).toThrow('valid IPs is fd00::/108');
  expect(() => itemPlaceOf(STOCK_SPEC, 'ip', 'fd01::1', servedBy('10.96.0.0/16'))).toThrow(
    'no IPv6 range, only 10.96.0.0/16',
  );
});
