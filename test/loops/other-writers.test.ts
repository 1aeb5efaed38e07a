import { expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointSubset,
  type EndpointsObject,
  MANAGED_BY_LABEL,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  SLICE_REF,
  sameJson,
  sliceRef,
} from '../../lib/cluster/published-objects.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { found } from '../support/found.ts';
import { A, B, dualWorldOf, type PassWorld, READY, settled, V6, worldOf } from '../support/pass-world.ts';

const FOREIGN = { kind: 'EndpointSlice', namespace: 'default', name: 'kubernetes-x7k2p' } as const;
const STRANGER = '10.0.0.9';
const MIRRORED = 'endpointslicemirroring-controller.k8s.io';
const LABELS = { [SERVICE_NAME_LABEL]: 'kubernetes', [MANAGED_BY_LABEL]: MIRRORED };
const PRUNE = { endpoints: { prune: true } };

const pruning = (...addresses: readonly string[]) => settled(worldOf(...addresses).change(PRUNE));

async function addForeign(
  { cluster, nowMs }: PassWorld,
  addressType = 'IPv4',
  name: string = FOREIGN.name,
): Promise<void> {
  const managedFields = [{ manager: 'kube-controller-manager', time: new Date(nowMs).toISOString() }];
  const metadata = { ...FOREIGN, name, labels: LABELS, managedFields };
  await cluster.port.create({ ...aSlice([STRANGER]), addressType, metadata });
}

async function writeSubsets(world: PassWorld, subsets: readonly EndpointSubset[]): Promise<void> {
  const current = found(world.cluster.find<EndpointsObject>(ENDPOINTS_REF));
  await world.cluster.port.update({ ...current, subsets });
}

const isForeignThere = ({ cluster }: PassWorld) => cluster.find(FOREIGN) !== undefined;

test.each<[string, KubernetesObject]>([
  ['the subsets', anEndpoints([STRANGER, A])],
  ['the endpoints of the slice', aSlice([STRANGER])],
])('the tick reports a field manager that changes %s again after the tick corrected them', async (_, object) => {
  const world = await settled(worldOf(A, B));
  world.cluster.place(object, 'kubectl');
  await world.tick();
  world.cluster.place(object, 'kubectl');
  const report = await world.tick();
  expect(report.findings).toMatchObject([{ type: 'twoOwners', item: 'kubectl' }]);
  expect(report.findings[0]?.message).toContain('kubectl changed what was written here');
  expect(world.cluster.writes).toEqual([]);
});

test('the deletion of the Endpoints together with their Service does not count as a change by another writer', async () => {
  const world = await settled(worldOf(A, B));
  world.cluster.place(anEndpoints([A, B, STRANGER]), 'kubectl');
  await world.tick();
  for (const ref of [SERVICE_REF, ENDPOINTS_REF, SLICE_REF]) world.cluster.remove(ref);
  expect(await world.tick()).toMatchObject({ findings: [] });
  expect(world.published()).toEqual([A, B]);
});

test('if another writer changes the port of the slice before each tick, each tick corrects the port', async () => {
  const world = await settled(worldOf(A, B));
  for (let tick = 0; tick < 6; tick++) {
    world.cluster.place(aSlice([A, B], [{ ...HTTPS, port: 1 }]), 'kubectl');
    await world.tick();
    expect(world.cluster.find<EndpointSliceObject>(SLICE_REF)?.ports).toMatchObject([{ port: 6443 }]);
  }
});

test.each([
  { ref: SLICE_REF, addressType: 'IPv4', endpoints: [{ addresses: [A] }] },
  { ref: sliceRef('IPv6'), addressType: 'IPv6', endpoints: [{ addresses: [V6] }] },
])('prune replaces the slice $ref.name of another writer and another address type', async ({ ref, ...expected }) => {
  const world = await settled(dualWorldOf(A, V6).change(PRUNE));
  world.cluster.remove(ref);
  world.cluster.place({ ...aSlice([STRANGER]), addressType: 'FQDN', metadata: { ...ref, labels: LABELS } });
  expect((await world.tick()).findings).toEqual([]);
  expect(world.cluster.find(ref)).toMatchObject(expected);
  expect(await world.tick()).toMatchObject({ changes: [], findings: [] });
});

test('prune removes the addresses that another writer added to notReadyAddresses', async () => {
  const world = await pruning(A);
  await writeSubsets(world, [{ addresses: [{ ip: A }], notReadyAddresses: [{ ip: STRANGER }], ports: [HTTPS] }]);
  await world.tick();
  const after = world.cluster.find<EndpointsObject>(ENDPOINTS_REF)?.subsets;
  expect(sameJson(after, anEndpoints([A]).subsets)).toBe(true);
});

test('if another writer creates a deleted slice again, findings report this writer, and the wait before each further deletion doubles; the Endpoints are still corrected at once', async () => {
  const world = await pruning(A, B);
  const deletions: boolean[] = [];
  const found: (readonly string[])[] = [];
  for (let tick = 1; tick <= 12; tick++) {
    if (!isForeignThere(world)) await addForeign(world);
    const { findings } = await world.tick();
    deletions.push(!isForeignThere(world));
    found.push(findings.map(({ type, item }) => `${type} ${item}`));
  }
  const [first, second] = found;
  expect(deletions).toEqual([true, false, true, false, false, false, true, false, false, false, false, false]);
  expect([first, second]).toEqual([[], ['foreignSlice kubernetes-x7k2p', 'twoOwners kube-controller-manager']]);
  await writeSubsets(world, anEndpoints([A]).subsets ?? []);
  await world.tick();
  expect(world.published()).toEqual([A, B]);
});

test.each([
  { name: FOREIGN.name, addressType: 'IPv6' },
  { name: sliceRef('IPv6').name, addressType: 'FQDN' },
])('prune keeps slice $name ($addressType) if the second family has no live address', async ({ name, addressType }) => {
  const world = await settled(dualWorldOf(A).change(PRUNE));
  await addForeign(world, addressType, name);
  const { changes, findings } = await world.answer(READY, A).tick();
  expect(changes).toEqual([]);
  expect(findings.map(({ type }) => type)).toEqual(['foreignSlice', 'noLiveLease']);
});

test('prune keeps a slice of another writer if the Endpoints could not be written, because that slice might be the only one with addresses', async () => {
  const world = await pruning(A, B);
  await addForeign(world);
  await writeSubsets(world, []);
  world.cluster.beforeWrite = (verb) => (verb === 'update' ? { outcome: 'conflict' } : undefined);
  expect(await world.tick()).toMatchObject({ errors: [{ code: 'Conflict' }] });
  expect(isForeignThere(world)).toBe(true);
});

test('with endpoints.prune: false, a slice of another writer is not deleted, and a finding reports the slice', async () => {
  const world = await settled(worldOf(A));
  await addForeign(world);
  const { changes, findings } = await world.tick();
  const message = expect.stringContaining(MIRRORED);
  expect([changes, findings]).toEqual([[], [{ type: 'foreignSlice', item: FOREIGN.name, message }]]);
  expect(isForeignThere(world)).toBe(true);
});
