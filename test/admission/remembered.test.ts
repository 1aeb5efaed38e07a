import { beforeEach, expect, test } from '@jest/globals';
import { fromBits, subtract } from '../../lib/allocator/snapshot-bytes.ts';
import { keepUnclaimed } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import type { ReviewFields } from '../support/admission-review.ts';
import { type AdmissionWorld, type Answered, anAdmissionWorld } from '../support/allocate-world.ts';

/* The lowest free address is 10.0.0.17. Two Services must never get the same address, whatever fails. */

const NONE = new Uint8Array(0);

let world: AdmissionWorld;
beforeEach(async () => {
  world = await anAdmissionWorld();
});

function addressIn({ patch = [] }: Answered): unknown {
  return patch.find(({ path }) => path === '/spec/clusterIP')?.value;
}

/** Returns a NodePort Service with this number of ports. */
function withPorts(count: number): ReviewFields {
  const ports = Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
  return { spec: { type: 'NodePort', ports } };
}

async function portsTaken(world: AdmissionWorld): Promise<number> {
  return Object.keys(await world.taken()).filter((item) => /^\d+$/.test(item)).length;
}

test.each<[string, ReviewFields, boolean]>([
  ['gets another address if its address is now held', {}, true],
  ['is refused if its address is now held and it requests that address', { spec: { clusterIP: '10.0.0.17' } }, false],
])('a Service %s', async (_what, fields, allowed) => {
  await world.ask({});
  const holds = [{ items: ['10.0.0.17'], owner: 'team-a', takenUpBy: 'owner' as const }];
  await world.store(RANGE_KEYS.primary, { holds });
  const answer = await world.ask(fields);
  expect(answer.allowed).toBe(allowed);
  expect(addressIn(answer)).toBe(allowed ? '10.0.0.18' : undefined);
  expect((await world.stored(RANGE_KEYS.primary)).holds).toEqual(holds);
});

test('after the range of a cluster changed, a repeated review of a Service gets an item of the new range', async () => {
  await world.ask({});
  const spec = { name: 'demo', allocator: 'table', serviceNodePortRange: '30000-30127' } as const;
  await registerCluster(world.table, aClusterSpec({ ...spec, serviceClusterIPRanges: ['10.1.0.0/24', 'fd00::/112'] }));
  expect(await world.ask({})).toMatchObject({ allowed: false, status: { code: 503 } });
  await world.store(RANGE_KEYS.primary, { range: '10.1.0.0/24', data: NONE, generation: 2 });
  expect(addressIn(await world.ask({}))).toBe('10.1.0.17');
});

test('the second review of a new Service gets another address, because the first review might have succeeded; later reviews get the second address', async () => {
  const answers: unknown[] = [];
  for (let time = 0; time < 5; time++) answers.push(addressIn(await world.ask({})));
  expect(answers).toEqual(['10.0.0.17', ...Array(4).fill('10.0.0.18')]);
  expect(Object.keys(await world.taken())).toEqual(['10.0.0.17', '10.0.0.18']);
});

test('a Service that is created again gets the same items, and their strikes are cleared', async () => {
  for (const name of ['web', 'web', 'other']) await world.ask({ name });
  world.clock.nowMs += 60 * 60_000;
  const last = { atMs: 1, passId: 'p' };
  await world.store(RANGE_KEYS.primary, { strikes: { once: fromBits([16]), twice: fromBits([17]), last } });
  expect(addressIn(await world.ask({}))).toBe('10.0.0.18');
  const { strikes } = await world.stored(RANGE_KEYS.primary);
  expect(strikes).toEqual({ once: fromBits([16]), twice: NONE, last });
});

test('a repeated review of an update gets the same items as the first review', async () => {
  const oldSpec = { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'] };
  const change: ReviewFields = { spec: { ...oldSpec, type: 'NodePort' }, oldSpec };
  const first = await world.ask(change);
  expect(first.patch).toHaveLength(1);
  expect((await world.ask(change)).patch).toEqual(first.patch);
});

test('a created Service does not get the node ports that were allocated for an update of a Service with the same name', async () => {
  const named = { clusterIP: '10.0.0.5', clusterIPs: ['10.0.0.5'] };
  const [a, b] = [1, 2].map((port) => ({ name: `p${port}`, port }));
  const exposed = { ...named, type: 'NodePort', ports: [{ ...a, nodePort: 30_016 }] };
  await world.ask({ spec: { ...exposed, ports: [a] }, oldSpec: named });
  await world.ask({ spec: { ...exposed, ports: [...exposed.ports, b] }, oldSpec: exposed });
  expect(Object.keys(await world.taken())).toEqual(['30016', '30017']);
  expect((await world.ask({ spec: { type: 'NodePort', ports: [a] } })).patch).toContainEqual(
    expect.objectContaining({ path: '/spec/ports/0/nodePort', value: 30_018 }),
  );
});

test('a Service that is created again does not get items that were freed, because another Service might have them', async () => {
  for (const name of ['web', 'web']) await world.ask({ name });
  const { data, unclaimed = [] } = await world.stored(RANGE_KEYS.primary);
  const others = keepUnclaimed(unclaimed, (bit) => bit !== 17);
  await world.store(RANGE_KEYS.primary, { data: subtract(data, fromBits([17])), unclaimed: others });
  expect(addressIn(await world.ask({ name: 'other' }))).toBe('10.0.0.18');
  expect(addressIn(await world.ask({ name: 'web' }))).toBe('10.0.0.19');
});

test('a refused review does not release the address of a concurrent review of the same Service', async () => {
  await world.store(RANGE_KEYS.nodePorts, { data: new Uint8Array(16).fill(255) });
  const spec = { clusterIP: '10.0.0.5' };
  let second: Answered | undefined;
  const get: KeyValueTable['get'] = async (cluster, key) => {
    if (key === RANGE_KEYS.nodePorts) second ??= await world.ask({ spec });
    return world.table.get(cluster, key);
  };
  const refused = await world.ask({ spec: { ...spec, type: 'NodePort' } }, { ...world.table, get });
  expect(refused).toMatchObject({ allowed: false });
  expect(second).toMatchObject({ allowed: true });
  expect(Object.keys(await world.taken())).toContain('10.0.0.5');
});

test('a Service with generateName gets its name from the webhook, and the webhook recognizes this name in the next review', async () => {
  const { patch } = await world.ask({ generateName: 'web-', spec: { type: 'NodePort' } });
  expect(patch).toContainEqual({ op: 'add', path: '/metadata/name', value: 'web-bbbbb' });
  const clusterIPs = ['10.0.0.17'];
  const spec = { type: 'NodePort', clusterIP: '10.0.0.17', clusterIPs, ports: [{ port: 80, nodePort: 30_016 }] };
  expect(await world.ask({ name: 'web-bbbbb', uid: 'u-2', spec })).toEqual({ uid: 'u-2', allowed: true });
});

test('a Service with generateName is refused if it requests a value of another Service with the same generateName', async () => {
  let picks = 0;
  const world = await anAdmissionWorld({ pick: (below) => picks++ % below });
  const asks: ReviewFields = { generateName: 'web-', spec: { clusterIP: '10.0.0.5' } };
  expect(await world.ask(asks)).toMatchObject({ allowed: true });
  expect(await world.ask(asks)).toMatchObject({ allowed: false, status: { code: 422 } });
});

test('a Service with too many ports for a review is refused, and nothing is allocated', async () => {
  const world = await anAdmissionWorld({ spec: { serviceNodePortRange: '30000-32767' } });
  expect(await world.ask(withPorts(2_767))).toMatchObject({
    allowed: false,
    status: {
      code: 422,
      message: 'Service "web" is invalid: spec.ports: Too many: 2767: must have at most 256 items',
    },
  });
  expect(await world.taken()).toEqual({});
  expect(await world.ask(withPorts(256))).toMatchObject({ allowed: true });
});

test('nothing is allocated for a Service with invalid ports or an invalid name', async () => {
  const twice = { type: 'NodePort', ports: [...Array(100)].map((_, index) => ({ name: `p${index}`, port: 80 })) };
  for (const fields of [{ spec: twice }, { ...withPorts(100), name: 'A_B' }, { ...withPorts(100), name: '' }]) {
    expect(await world.ask(fields)).toEqual({ uid: 'u-1', allowed: true });
  }
  expect(await world.taken()).toEqual({});
});

test('a namespace whose Services are never created cannot use up a range: other namespaces still get items', async () => {
  const answers: Answered[] = [];
  for (let index = 0; index < 20; index++) answers.push(await world.ask({ ...withPorts(10), name: `s${index}` }));
  expect(answers.at(-1)).toMatchObject({
    allowed: false,
    status: { code: 429, reason: 'TooManyRequests', message: expect.stringContaining('try again in some minutes') },
  });
  expect(await portsTaken(world)).toBe(60);
  for (let index = 0; index < 3; index++) {
    expect(await world.ask({ ...withPorts(10), namespace: 'other', name: `s${index}` })).toMatchObject({
      allowed: true,
    });
  }
  const again = await world.ask({ ...withPorts(10), name: 's1' });
  expect(again.patch).toEqual(answers[1]?.patch?.map((each) => expect.objectContaining({ path: each.path })));
  expect(await portsTaken(world)).toBe(90);
});

test.each([
  ['if its namespace has too many unclaimed items, while other namespaces still get some', 470, false, true],
  ['in every namespace if the table item that stores the range has no room for more unclaimed items', 900, true, false],
])('a Service is refused %s', async (_what, count, ofTheirOwn, othersMay) => {
  const world = await anAdmissionWorld({ spec: { serviceClusterIPRanges: ['10.0.0.0/20', 'fd00::/112'] } });
  const bits = Array.from({ length: count }, (_, index) => 16 + index);
  const unclaimed = bits.map((bit) => {
    const long = `s${bit}`.padEnd(63, 'x');
    const service = ofTheirOwn ? { namespace: long, name: 's' } : { namespace: 'busy', name: long };
    return { ...service, reviews: 1, first: [bit], later: [] };
  });
  await world.store(RANGE_KEYS.primary, { range: '10.0.0.0/20', data: fromBits(bits), unclaimed });
  const refused = { allowed: false, status: { code: 429 } };
  expect(await world.ask({ namespace: 'busy', name: 'next' })).toMatchObject(refused);
  expect(await world.ask({ namespace: 'other', name: 'next' })).toMatchObject(othersMay ? { allowed: true } : refused);
  // A Service that is created again still gets its unclaimed item.
  const [{ namespace = '', name = '' } = {}] = unclaimed;
  expect(await world.ask({ namespace, name })).toMatchObject({ allowed: true });
});

test('a Service with sixteen ports gets all its node ports even if they fill the range', async () => {
  const world = await anAdmissionWorld({ spec: { serviceNodePortRange: '30000-30015' } });
  expect(await world.ask(withPorts(16))).toMatchObject({ allowed: true });
  expect(await portsTaken(world)).toBe(16);
});

test('only unclaimed items count against the share of a namespace', async () => {
  for (let index = 0; index < 6; index++) await world.ask({ ...withPorts(10), name: `s${index}` });
  expect(await world.ask({ ...withPorts(10), name: 'next' })).toMatchObject({ allowed: false });
  const { unclaimed, ...seen } = await world.stored(RANGE_KEYS.nodePorts);
  const ofRepeated = unclaimed.map((each) => ({ ...each, first: [], later: each.first }));
  await world.store(RANGE_KEYS.nodePorts, { ...seen, unclaimed: ofRepeated });
  expect(await world.ask({ ...withPorts(10), name: 'next' })).toMatchObject({ allowed: false });
  await world.store(RANGE_KEYS.nodePorts, { ...seen, unclaimed: [] });
  expect(await world.ask({ ...withPorts(10), name: 'next' })).toMatchObject({ allowed: true });
});
