import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { EndpointSliceObject } from '../../lib/cluster/published-objects.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { A, B, type EndpointsWorld, SHUTTING_DOWN, settled, worldOf } from '../support/endpoints-world.ts';

const FOREIGN = '10.0.0.9';

/** Writes these addresses to the Endpoints and the slice, as another owner of the endpoints does. */
function overwrite(world: EndpointsWorld, ...addresses: readonly string[]): void {
  world.cluster.place(anEndpoints(addresses), 'kube-apiserver');
  world.cluster.place(aSlice(addresses), 'kube-apiserver');
}

/** Runs ticks, each after a write of the other owner. Returns the seconds at which the ticks wrote. */
async function contest(world: EndpointsWorld, ticks: number, ...addresses: readonly string[]): Promise<number[]> {
  const startMs = world.nowMs;
  const writtenAt: number[] = [];
  for (let tick = 0; tick < ticks; tick++) {
    overwrite(world, ...addresses);
    await world.tick();
    if (world.cluster.writes.length > 0) writtenAt.push((world.nowMs - startMs) / 1000);
  }
  return writtenAt;
}

function withReadiness(slice: EndpointSliceObject, ready: boolean): EndpointSliceObject {
  return { ...slice, endpoints: (slice.endpoints ?? []).map((one) => ({ ...one, conditions: { ready } })) };
}

/** Returns an object without its version and field managers, which each write changes. */
function contentOf(object: KubernetesObject | undefined) {
  const { labels, name } = object?.metadata ?? { name: '' };
  return { ...object, metadata: { name, labels } };
}

describe('endpoints with another writer', () => {
  const { metadata, ...unlabelled } = anEndpoints([A, B]);
  test.each<[string, KubernetesObject]>([
    ['the subsets', anEndpoints([FOREIGN, A])],
    ['the ports', anEndpoints([A, B], [HTTPS, { ...HTTPS, name: 'other', port: 1 }])],
    ['the labels', { ...unlabelled, metadata: { ...metadata, labels: {} } }],
    ['the endpoints of the slice', aSlice([FOREIGN])],
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

  test('the deletion of the Service, with which the API server deletes the Endpoints, is no change by another writer', async () => {
    const world = await settled(worldOf(A, B));
    world.cluster.place(anEndpoints([A, B, FOREIGN]), 'kubectl');
    await world.tick();
    for (const kind of ['Service', 'Endpoints', 'EndpointSlice'] as const) {
      world.cluster.remove({ kind, namespace: 'default', name: 'kubernetes' });
    }
    const { findings } = await world.tick();
    expect(findings).toEqual([]);
    expect(world.published()).toEqual([A, B]);
  });

  test.each<[string, readonly string[]]>([
    ['publishes an address that was removed', [A, B]],
    ['empties them', []],
  ])('during a contest, the tick corrects the endpoints at once if the other writer %s', async (_, addresses) => {
    const world = await settled(worldOf(A, B));
    await world.answer(SHUTTING_DOWN, B).tick();
    // The next correction of a harmless change would be 70 s after the first write of the other owner.
    expect(await contest(world, 5, A, FOREIGN)).toEqual([10, 30]);
    expect(await contest(world, 1, ...addresses)).toEqual([10]);
    expect(world.published()).toEqual([A]);
  });

  const slice = aSlice([A, B]);
  const { metadata: ofSlice } = slice;
  test.each<[string, KubernetesObject]>([
    ['marks all endpoints as not ready', withReadiness(slice, false)],
    ['removes the label of the Service from the slice', { ...slice, metadata: { ...ofSlice, labels: {} } }],
    ['changes the port of the slice', aSlice([A, B], [{ ...HTTPS, port: 1 }])],
    ['changes the port of the Endpoints', anEndpoints([A, B], [{ ...HTTPS, port: 1 }])],
  ])('during a contest, each tick corrects the objects if the other writer %s', async (_, object) => {
    const world = await settled(worldOf(A, B));
    const { kind, name } = { kind: object.kind as 'Endpoints', name: 'kubernetes' };
    const before = contentOf(world.cluster.find({ kind, namespace: 'default', name }));
    for (let tick = 0; tick < 6; tick++) {
      world.cluster.place(object, 'kubectl');
      await world.tick();
      expect(contentOf(world.cluster.find({ kind, namespace: 'default', name }))).toEqual(before);
    }
  });
});
