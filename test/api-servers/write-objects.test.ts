import { describe, expect, test } from '@jest/globals';
import { writeObjects } from '../../lib/api-servers/write-objects.ts';
import { type EndpointSliceObject, SLICE_REF } from '../../lib/endpoints/objects.ts';
import { anEndpoints, aSlice } from '../support/an-endpoints.ts';
import { found } from '../support/found.ts';
import { memoryCluster } from '../support/memory-cluster.ts';

const [A, B] = ['10.1.2.3', '10.1.2.4'] as const;

const mirror = (slice?: EndpointSliceObject) => ({ verb: 'mirror', object: slice, prune: false }) as const;

describe('writing Endpoints and slices', () => {
  test('the slice mirrors the Endpoints as the API server returned them', async () => {
    const cluster = memoryCluster();
    const create: typeof cluster.port.create = (object) =>
      cluster.port.create(object.kind === 'Endpoints' ? { ...object, ...anEndpoints([A, B]) } : object);
    const written = await writeObjects({ ...cluster.port, create }, [
      { verb: 'create', object: anEndpoints([A]) },
      mirror(),
    ]);
    expect(cluster.writes).toEqual(['create endpoints', 'create endpointslices']);
    expect(written).toMatchObject({
      changes: [
        `created endpoints default/kubernetes: ${A} ${B}`,
        `created endpointslice default/kubernetes: ${A} ${B}`,
      ],
      objects: { Endpoints: anEndpoints([A, B]), EndpointSlice: aSlice([A, B]) },
    });
  });

  test.each([
    { verb: 'create', objects: [anEndpoints([B])], code: 'AlreadyExists' },
    { verb: 'update', objects: [], code: 'Conflict' },
  ] as const)('no slice is written if the $verb of the Endpoints fails with $code', async ({ verb, objects, code }) => {
    const cluster = memoryCluster(objects);
    const object = { ...anEndpoints([A]), metadata: { ...anEndpoints([]).metadata, uid: 'u', resourceVersion: '1' } };
    const written = await writeObjects(cluster.port, [{ verb, object }, mirror(aSlice([B]))]);
    expect(written).toMatchObject({ changes: [], failure: { code } });
    expect(cluster.writes).toEqual([]);
  });

  test('if another writer creates the slice at the same time, the pass does not change that slice and reports no failure', async () => {
    const cluster = memoryCluster([aSlice([B])]);
    const written = await writeObjects(cluster.port, [{ verb: 'create', object: aSlice([A]) }]);
    expect(written).toEqual({ changes: [], objects: {}, isWithheld: false });
  });

  test('a slice of another address type is deleted only if it is unchanged since the read, and then a new slice is created', async () => {
    const cluster = memoryCluster([{ ...aSlice([A]), addressType: 'IPv6' } as EndpointSliceObject]);
    const slice = found(await cluster.port.get<EndpointSliceObject>(SLICE_REF));
    const plan = [{ verb: 'replace', object: slice } as const, { verb: 'create', object: aSlice([A]) } as const];
    cluster.beforeWrite = (verb) => (verb === 'delete' ? { outcome: 'conflict' } : undefined);
    expect(await writeObjects(cluster.port, plan)).toMatchObject({ changes: [], failure: { code: 'Conflict' } });
    cluster.beforeWrite = undefined;
    const { changes } = await writeObjects(cluster.port, plan);
    expect(changes).toEqual(['deleted endpointslice IPv6', `created endpointslice default/kubernetes: ${A}`]);
  });
});
