import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type EndpointSliceObject, SLICE_REF } from '../../lib/cluster/published-objects.ts';
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

describe('endpoints with another writer', () => {
  test.each<[string, KubernetesObject]>([
    ['the subsets', anEndpoints([FOREIGN, A])],
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

  test('the deletion of the Endpoints together with their Service does not count as a change by another writer', async () => {
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

  test('during a contest, the tick corrects the endpoints at once if the other writer empties them', async () => {
    const world = await settled(worldOf(A, B));
    await world.answer(SHUTTING_DOWN, B).tick();
    // The next correction of a harmless change would be 70 s after the first write of the other owner.
    expect(await contest(world, 5, A, FOREIGN)).toEqual([10, 30]);
    expect(await contest(world, 1)).toEqual([10]);
    expect(world.published()).toEqual([A]);
  });

  test('during a contest, each tick corrects the slice if the other writer changes its port', async () => {
    const world = await settled(worldOf(A, B));
    for (let tick = 0; tick < 6; tick++) {
      world.cluster.place(aSlice([A, B], [{ ...HTTPS, port: 1 }]), 'kubectl');
      await world.tick();
      expect(world.cluster.find<EndpointSliceObject>(SLICE_REF)?.ports).toMatchObject([{ port: 6443 }]);
    }
  });
});
