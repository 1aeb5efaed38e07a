import { describe, expect, test } from '@jest/globals';
import { writeEndpoints } from '../../lib/api-servers/write-endpoints.ts';
import { ENDPOINTS_REF, type EndpointSliceObject, SLICE_REF } from '../../lib/endpoints/objects.ts';
import { anEndpoints, aSlice, HTTPS } from '../support/an-endpoints.ts';
import { type MemoryCluster, memoryCluster } from '../support/memory-cluster.ts';

const [A, B] = ['10.1.2.3', '10.1.2.4'] as const;
const EXTRA = { name: 'extra', port: 1000, protocol: 'TCP' };

/** Writes the Endpoints as they are wanted, over those that are there. */
async function write(cluster: MemoryCluster, outcome: 'create' | 'update' | 'keep', wanted = anEndpoints([A])) {
  const current = cluster.find(ENDPOINTS_REF);
  const metadata = { ...wanted.metadata, ...(current && { resourceVersion: current.metadata.resourceVersion ?? '' }) };
  const endpoints = { ...wanted, metadata };
  return writeEndpoints(cluster.port, { outcome, endpoints }, await cluster.port.get<EndpointSliceObject>(SLICE_REF));
}

describe('making Endpoints and their slice', () => {
  test('creates both, Endpoints first', async () => {
    const cluster = memoryCluster();
    const written = await write(cluster, 'create');
    expect(cluster.writes).toEqual(['create endpoints', 'create endpointslices']);
    expect(written).toMatchObject({ endpoints: anEndpoints([A]), slice: aSlice([A]) });
  });

  test('leaves out of the slice what is of the other family', async () => {
    const cluster = memoryCluster();
    await write(cluster, 'create', anEndpoints([A, 'fd00::1']));
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A]));
  });

  test('creates a slice of IPv6 when all addresses are', async () => {
    const cluster = memoryCluster();
    await write(cluster, 'create', anEndpoints(['fd00::1']));
    expect(cluster.find(SLICE_REF)).toMatchObject({ ...aSlice(['fd00::1']), addressType: 'IPv6' });
  });

  test('touches no slice when the Endpoints are there already', async () => {
    const cluster = memoryCluster([anEndpoints([B])]);
    expect(await write(cluster, 'create')).toMatchObject({ changes: [], error: { code: 'AlreadyExists' } });
    expect(cluster.writes).toEqual([]);
  });

  test('a slice that another writer creates meanwhile is read by the next pass', async () => {
    const cluster = memoryCluster();
    cluster.beforeWrite = (_verb, { kind }) => (kind === 'EndpointSlice' ? { outcome: 'alreadyExists' } : undefined);
    expect((await write(cluster, 'create')).error).toBeUndefined();
  });
});

describe('updating Endpoints and their slice', () => {
  const both = () => memoryCluster([anEndpoints([A]), aSlice([A])]);

  test('replaces a slice of another address type', async () => {
    const cluster = memoryCluster([anEndpoints([A]), { ...aSlice([A]), addressType: 'IP' } as EndpointSliceObject]);
    const { changes } = await write(cluster, 'update');
    expect(cluster.writes).toEqual(['update endpoints', 'delete endpointslices', 'create endpointslices']);
    expect(changes.slice(1)).toEqual(['deleted endpointslice IP', `created endpointslice default/kubernetes: ${A}`]);
  });

  test('follows more ports and addresses', async () => {
    const cluster = both();
    await write(cluster, 'update', anEndpoints([A, B], [HTTPS, EXTRA]));
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A, B], [HTTPS, EXTRA]));
  });

  test('is an error when the Endpoints were deleted, and touches no slice', async () => {
    const cluster = memoryCluster([aSlice([B])]);
    expect(await write(cluster, 'update')).toMatchObject({ error: { code: 'Conflict' } });
    expect(cluster.writes).toEqual([]);
  });

  test('ends at a slice that changed after it was read', async () => {
    const cluster = memoryCluster([anEndpoints([A]), { ...aSlice([A]), addressType: 'IPv6' } as EndpointSliceObject]);
    cluster.beforeWrite = (verb) => (verb === 'delete' ? { outcome: 'conflict' } : undefined);
    expect(await write(cluster, 'update')).toMatchObject({ error: { code: 'Conflict' } });
    expect(cluster.find(SLICE_REF)).toMatchObject({ addressType: 'IPv6' });
  });
});

describe.each([
  { outcome: 'create', endpoints: [], writes: ['create endpoints'] },
  { outcome: 'update', endpoints: [anEndpoints([A])], writes: ['update endpoints'] },
  { outcome: 'keep', endpoints: [anEndpoints([A])], writes: [] },
] as const)('the slice, with Endpoints to $outcome', ({ outcome, endpoints, writes }) => {
  test.each([
    { name: 'leaves one that is right', slices: [aSlice([A])], sliceWrites: [] },
    { name: 'updates one that is wrong', slices: [aSlice([B])], sliceWrites: ['update endpointslices'] },
    { name: 'creates one that is missing', slices: [], sliceWrites: ['create endpointslices'] },
  ])('$name', async ({ slices, sliceWrites }) => {
    const cluster = memoryCluster([...endpoints, ...slices]);
    await write(cluster, outcome);
    expect(cluster.writes).toEqual([...writes, ...sliceWrites]);
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A]));
  });
});
