import { beforeEach, describe, expect, test } from '@jest/globals';
import { freeAddresses, openServiceCidrs } from '../../../cli/allocate/open-service-cidrs.ts';
import { allocation } from '../../../lib/allocate/allocation.ts';
import type { AllocateRequest } from '../../../lib/allocate/request.ts';
import { parseCidr } from '../../../lib/allocator/network.ts';
import type { KubernetesObject } from '../../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../../../lib/kubernetes/cluster-port.ts';
import { ipAddressOfHold } from '../../../lib/range/hold-ip-address.ts';
import type { ClusterSpec } from '../../../lib/spec/cluster-spec.ts';
import { type AllocateWorld, anAllocateWorld, CLUSTER } from '../../support/allocate-world.ts';
import { type MemoryCluster, memoryCluster } from '../../support/memory-cluster.ts';
import { stockRecord, stockService } from '../../support/stock-objects.ts';

const NEXT = { range: 'serviceips', next: true } as const;
const NEXT_IPV6 = { range: 'secondaryserviceips', next: true } as const;
const ip = (value: string) => ({ range: 'serviceips', value }) as const;
const HELD = { owner: 'r1', until: '2026-01-01T12:15:00.000Z', takenUpBy: 'any' };

function cidr(name: string, cidrs: readonly string[], ready = true): KubernetesObject {
  const status = { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name } };
  return { ...object, ...{ spec: { cidrs }, status } };
}

interface Options {
  readonly objects?: readonly KubernetesObject[];
  readonly spec?: Partial<ClusterSpec>;
  /**
   * Returns functions that replace those of the Kubernetes client: for example a create that fails, or during which another
   * writer writes.
   */
  readonly spoil?: (port: ClusterPort) => Partial<ClusterPort>;
}

/** A cluster whose own API servers allocate, and a handler that connects to it. */
async function aCluster({ objects, spec, spoil }: Options = {}): Promise<AllocateWorld & { cluster: MemoryCluster }> {
  const cluster = memoryCluster(objects ?? [cidr('kubernetes', ['10.0.0.0/27', 'fd00::/64'])]);
  const port = { ...cluster.port, ...spoil?.(cluster.port) };
  const handler = allocation({
    pause: () => Promise.resolve(),
    pick: () => 0,
    openHeld: (own, range, options) => openServiceCidrs(port, own, range, options),
  });
  const world = await anAllocateWorld({ spec: { allocator: 'apiserver', ...spec }, handler, isRepaired: false });
  return { ...world, cluster };
}

let world: Awaited<ReturnType<typeof aCluster>>;
beforeEach(async () => {
  world = await aCluster();
});

const release = (...items: AllocateRequest['items']) => ({ operation: 'release', items }) as const;
const valuesIn = ({ items }: { readonly items: readonly { readonly value?: unknown }[] }) =>
  items.map(({ value }) => value);
const find = ({ cluster }: { cluster: MemoryCluster }, name: string) => cluster.find({ kind: 'IPAddress', name });

test('a request gets the given addresses and the next free addresses of both families, and holds them by IPAddresses', async () => {
  const answer = await world.ask({ items: [NEXT, ip('10.0.0.1'), NEXT_IPV6, { ...NEXT, count: 2 }] });
  expect(answer).toMatchObject({ outcome: 'done', items: [{ outcome: 'allocated', hold: HELD }, {}, {}, {}, {}] });
  expect(valuesIn(answer)).toEqual(['10.0.0.2', '10.0.0.1', 'fd00::1', '10.0.0.3', '10.0.0.4']);
  const untilMs = Date.parse(HELD.until);
  expect(find(world, '10.0.0.1')).toMatchObject(
    ipAddressOfHold('10.0.0.1', { owner: 'r1', takenUpBy: 'any', untilMs, requestId: 'r1' }),
  );
});

test('a request can get all free addresses of all ready ServiceCIDRs, and is refused if it needs more addresses', async () => {
  const objects = [
    cidr('kubernetes', ['10.0.0.0/30']),
    cidr('second', ['10.5.0.0/30']),
    cidr('deleted', ['10.6.0.0/30'], false),
    stockRecord('10.0.0.1', 'a/s'),
  ];
  const world = await aCluster({ objects });
  expect(await world.ask({ requestId: 'r0', items: [{ ...NEXT, count: 4 }] })).toMatchObject({
    error: { code: 'Full', message: 'range is full: 3 free, 4 requested' },
  });
  expect(valuesIn(await world.ask({ items: [{ ...NEXT, count: 3 }] }))).toEqual(['10.0.0.2', '10.5.0.1', '10.5.0.2']);
  const { error } = await world.ask({ requestId: 'r2', items: [ip('10.6.0.1')] });
  expect(error?.code).toBe('NotInRange');
});

test('if another writer creates the IPAddress of the chosen address first, a request tries the next address', async () => {
  world.cluster.beforeWrite = (_, { metadata: { name } }) => {
    world.cluster.beforeWrite = undefined;
    world.cluster.place(stockRecord(name, 'a/s'));
    return undefined;
  };
  expect(valuesIn(await world.ask({ items: [NEXT] }))).toEqual(['10.0.0.2']);
  expect(find(world, '10.0.0.1')).toMatchObject(stockRecord('10.0.0.1', 'a/s'));
});

test('a request with a taken address is refused, and releases the addresses that it had already held', async () => {
  world.cluster.place(stockRecord('10.0.0.7', 'a/s'));
  for (const second of ['10.0.0.7', '10.0.0.5']) {
    const answer = await world.ask({ requestId: `r-${second}`, items: [ip('10.0.0.5'), ip(second)] });
    expect(answer.error).toEqual({ code: 'AlreadyAllocated', message: 'provided IP is already allocated' });
    expect(answer.items[1]).toMatchObject({ outcome: 'refused', error: { code: 'AlreadyAllocated' } });
    expect(find(world, '10.0.0.5')).toBeUndefined();
  }
});

test('a request does not hold the address of a Service whose IPAddress is missing', async () => {
  world.cluster.place(stockService('s', '10.0.0.1', 'fd00:0::2'));
  expect(valuesIn(await world.ask({ items: [NEXT] }))).toEqual(['10.0.0.2']);
  const second = { range: 'secondaryserviceips', value: 'fd00::2' } as const;
  for (const item of [ip('10.0.0.1'), second]) {
    const { error } = await world.ask({ requestId: `r-${item.range}`, items: [item] });
    expect(error?.code).toBe('AlreadyAllocated');
    expect(find(world, item.value)).toBeUndefined();
  }
});

test('if a request failed halfway, its repetition holds no more addresses than were requested', async () => {
  let calls = 0;
  const world = await aCluster({
    spoil: (port) => ({
      create: async (object) => {
        calls += 1;
        const result = await port.create(object);
        if (calls === 2) throw new ClusterError('Unavailable', 'the reply was lost');
        return result;
      },
    }),
  });
  const request = { items: [{ ...NEXT, count: 3 }] };
  await expect(world.ask(request)).rejects.toMatchObject({ code: 'Unavailable' });
  expect(valuesIn(await world.ask(request))).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  expect(world.cluster.writes).toHaveLength(3);
});

test('if the reply to the create of an IPAddress was lost, the request still holds the address, because the retry finds the IPAddress', async () => {
  const createTwice: Options['spoil'] = ({ create }) => ({
    create: (object) => create(object).then(() => create(object)),
  });
  const world = await aCluster({ spoil: createTwice });
  expect(await world.ask({ items: [ip('10.0.0.9')] })).toMatchObject({ outcome: 'done' });
});

test('a dry run returns the same answer as the request, and creates nothing', async () => {
  const world = await aCluster({ objects: [cidr('kubernetes', ['10.0.0.0/27']), stockRecord('10.0.0.1', 'a/s')] });
  const answer = await world.ask({ dryRun: true, items: [{ ...NEXT, count: 2 }] });
  expect(answer).toMatchObject({ outcome: 'done', dryRun: true });
  expect(valuesIn(answer)).toEqual(['10.0.0.2', '10.0.0.3']);
  expect(await world.ask({ dryRun: true, items: [ip('10.0.0.1')] })).toMatchObject({ outcome: 'refused' });
  expect(world.cluster.writes).toEqual([]);
});

const manyHeld = Array.from({ length: 1_000 }, (_, index) =>
  ipAddressOfHold(`10.0.${index >> 8}.${index & 255}`, { owner: 'a', takenUpBy: 'any' }),
);
const withoutSpace = { objects: [cidr('kubernetes', ['10.0.0.0/16']), ...manyHeld] };
const oneFamily = [cidr('kubernetes', ['10.0.0.0/27'])];
const ofOwner = { hold: { owner: 'a', takenUpBy: 'owner' } } as const;
const ofPort: Partial<AllocateRequest> = { items: [{ range: 'servicenodeports', next: true }] };
test.each<[string, Options, Partial<AllocateRequest>, string, string]>([
  ['for a port', {}, ofPort, 'NotSupported', 'no object can hold a node port'],
  ['that claims a hold for a Service', {}, { takeUp: {} }, 'NotSupported', 'no Service can claim a hold'],
  ['for a hold that only Services of its owner can claim', {}, ofOwner, 'NotSupported', 'no Service can claim a hold'],
  ['before Kubernetes 1.33', { objects: [] }, {}, 'NotSupported', 'Kubernetes 1.33'],
  ['while passes only observe', { spec: { mode: 'observe' } }, {}, 'ObserveOnly', 'mode: observe'],
  ['in an absent family', { objects: oneFamily }, { items: [NEXT_IPV6] }, 'NoSecondaryRange', '10.0.0.0/27'],
  ['that exceeds the space for holds', withoutSpace, {}, 'HoldsFull', ''],
  ['for an address outside the ServiceCIDRs', {}, { items: [ip('10.9.0.1')] }, 'NotInRange', '10.0.0.0/27'],
])('a request %s is refused, and nothing is created', async (_, options, request, code, message) => {
  const world = await aCluster(options);
  expect(await world.ask({ items: [NEXT], ...request })).toMatchObject({
    outcome: 'refused',
    error: { code, message: expect.stringContaining(message) },
  });
  expect(world.cluster.writes).toEqual([]);
});

test('a user without the permission to list ServiceCIDRs gets an error that contains the resolution', async () => {
  const list = () => Promise.reject(new ClusterError('Forbidden', 'no'));
  const world = await aCluster({ spoil: () => ({ list }) });
  await expect(world.ask({ items: [NEXT] })).rejects.toThrow('Apply deploy/rbac.yaml');
});

test('a release frees only held addresses, and never the address of a Service', async () => {
  world.cluster.place(stockRecord('10.0.0.7', 'a/s'));
  await world.ask({ items: [ip('10.0.0.5')] });
  const items = ['10.0.0.5', '10.0.0.6', '10.0.0.7', '10.9.0.1'].map(ip);
  const answer = await world.ask({ requestId: 'r2', ...release(...items) });
  expect(answer.items.map(({ outcome }) => outcome)).toEqual(['released', 'free', 'refused', 'notInRange']);
  expect(answer).toMatchObject({ outcome: 'refused', error: { code: 'NotHeld' } });
  expect(find(world, '10.0.0.5')).toBeUndefined();
  expect(find(world, '10.0.0.7')).toBeDefined();
});

test('a release refuses a held address that a Service has, whatever the spelling of the address, and releases the other addresses', async () => {
  const held = ['10.0.0.5', '10.0.0.6', 'fd00::5'];
  const [first, second] = [held.slice(0, 2).map(ip), [{ range: 'secondaryserviceips', value: 'fd00::5' } as const]];
  await world.ask({ items: [...first, ...second] });
  world.cluster.place(stockService('s', '10.0.0.5', 'fd00:0::5'));
  for (const dryRun of [true, false]) {
    const answer = await world.ask({ requestId: 'r2', ...release(...first, ...second), dryRun });
    expect(answer.items.map(({ outcome }) => outcome)).toEqual(['refused', 'released', 'refused']);
    expect(answer.error).toMatchObject({ code: 'NotHeld', message: expect.stringContaining('Service a/s has') });
  }
  expect(held.map((name) => find(world, name) !== undefined)).toEqual([true, false, true]);
});

test('the undo of a request does not delete an IPAddress if a Service got the address meanwhile', async () => {
  world.cluster.beforeWrite = (_, { metadata: { name } }) => {
    if (name === '10.0.0.5') world.cluster.place(stockService('s', '10.0.0.5'));
    return name === '10.0.0.6' ? { outcome: 'alreadyExists' } : undefined;
  };
  const { error } = await world.ask({ items: ['10.0.0.4', '10.0.0.5', '10.0.0.6'].map(ip) });
  expect(error?.code).toBe('AlreadyAllocated');
  expect(['10.0.0.4', '10.0.0.5'].map((name) => find(world, name) !== undefined)).toEqual([false, true]);
});

test('a release frees neither an address of another owner nor an address whose hold changed after the release had read the hold', async () => {
  await world.ask({ items: [ip('10.0.0.5')], hold: { owner: 'shop' } });
  const releaseBy = (requestId: string, owner?: string) =>
    world.ask({ requestId, ...(owner && { owner }), ...release(ip('10.0.0.5')) });
  const notHeld = { error: { code: 'NotHeld' } };
  expect(await releaseBy('r2', 'ci')).toMatchObject(notHeld);
  world.cluster.beforeWrite = (verb) => (verb === 'delete' ? { outcome: 'conflict' } : undefined);
  expect(await releaseBy('r3')).toMatchObject(notHeld);
  world.cluster.beforeWrite = undefined;
  expect(await releaseBy('r4', 'shop')).toMatchObject({ outcome: 'done' });
  expect(find(world, '10.0.0.5')).toBeUndefined();
});

test('a release frees a hold in a ServiceCIDR that is being deleted', async () => {
  const hold = { owner: 'a', takenUpBy: 'any' } as const;
  const cidrs = [cidr('kubernetes', ['10.0.0.0/27']), cidr('old', ['10.6.0.0/27'], false)];
  const world = await aCluster({ objects: [...cidrs, ipAddressOfHold('10.6.0.1', hold)] });
  expect(await world.ask(release(ip('10.6.0.1')))).toMatchObject({ items: [{ outcome: 'released' }] });
});

test('a look-up returns which addresses are taken, held and free', async () => {
  world.cluster.place(stockRecord('10.0.0.20', 'a/s'));
  await world.ask({ items: [ip('10.0.0.5')], hold: { owner: 'shop', until: 'forever' } });
  const items = [ip('10.0.0.5'), ip('10.0.0.20'), ip('10.0.0.21'), ip('10.9.0.1')];
  const answer = await world.ask({ requestId: 'r2', operation: 'lookUp', items });
  expect(answer).toMatchObject({ cluster: CLUSTER, outcome: 'done' });
  expect(answer.items).toMatchObject([
    { outcome: 'taken', hold: { owner: 'shop', until: 'forever', requestId: 'r1' } },
    { outcome: 'taken' },
    { outcome: 'free' },
    { outcome: 'notInRange' },
  ]);
});

const networks = (...cidrs: readonly string[]) => cidrs.flatMap((text) => parseCidr(text) ?? []);
const lowest = () => 0;
const highest = (below: number) => below - 1;

describe('free addresses of ServiceCIDRs', () => {
  test('the search in each band begins at a random address, and returns no address twice', () => {
    const free = [...freeAddresses(networks('10.0.0.0/27'), () => false, highest)];
    expect([free[0], free[1], free[16], free[17]]).toEqual(['10.0.0.16', '10.0.0.1', '10.0.0.30', '10.0.0.17']);
    expect(new Set(free).size).toBe(30);
  });

  test('the search skips taken addresses, even if another caller allocates them during the search', () => {
    const taken = new Set(['10.0.0.1']);
    const free = freeAddresses(networks('10.0.0.0/27'), (address) => taken.has(address), lowest);
    expect(free.next().value).toBe('10.0.0.2');
    taken.add('10.0.0.3');
    expect(free.next().value).toBe('10.0.0.4');
  });

  test.each([
    ['10.0.0.0/30', ['10.0.0.1', '10.0.0.2']],
    ['10.0.0.0/31', []],
    ['10.0.0.0/32', []],
    ['fd00::/127', ['fd00::1']],
    ['fd00::/128', []],
  ])('the free addresses of the network %s are %j', (cidr, addresses) => {
    expect([...freeAddresses(networks(cidr), () => false, lowest)]).toEqual(addresses);
  });

  test('the search in a /64 range does not enumerate the addresses: it skips a taken static band of 256 addresses at once', () => {
    const middle = (below: number) => Math.min(below - 1, 2 ** 40);
    expect(freeAddresses(networks('fd00::/64'), () => false, middle).next().value).toBe('fd00::100');
    const isStatic = (text: string) => Number.parseInt(text.slice('fd00::'.length), 16) <= 0x100;
    expect(freeAddresses(networks('fd00::/64'), isStatic, lowest).next().value).toBe('fd00::101');
  });
});
