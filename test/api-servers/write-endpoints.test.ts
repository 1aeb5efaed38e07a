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

  test('leaves addresses of the other family out of the slice', async () => {
    const cluster = memoryCluster();
    await write(cluster, 'create', anEndpoints([A, 'fd00::1']));
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A]));
  });

  test('creates an IPv6 slice when all addresses are IPv6', async () => {
    const cluster = memoryCluster();
    await write(cluster, 'create', anEndpoints(['fd00::1']));
    expect(cluster.find(SLICE_REF)).toMatchObject({ ...aSlice(['fd00::1']), addressType: 'IPv6' });
  });

  test('writes no slice when the Endpoints exist already', async () => {
    const cluster = memoryCluster([anEndpoints([B])]);
    expect(await write(cluster, 'create')).toMatchObject({ changes: [], error: { code: 'AlreadyExists' } });
    expect(cluster.writes).toEqual([]);
  });

  test('leaves a slice that another writer creates at the same time to the next pass', async () => {
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

  test('adds new ports and addresses to the slice', async () => {
    const cluster = both();
    await write(cluster, 'update', anEndpoints([A, B], [HTTPS, EXTRA]));
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A, B], [HTTPS, EXTRA]));
  });

  test('fails when the Endpoints were deleted, and writes no slice', async () => {
    const cluster = memoryCluster([aSlice([B])]);
    expect(await write(cluster, 'update')).toMatchObject({ error: { code: 'Conflict' } });
    expect(cluster.writes).toEqual([]);
  });

  test('fails when the slice changed after it was read, and leaves it unchanged', async () => {
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
] as const)('writing the slice with the outcome $outcome for the Endpoints', ({ outcome, endpoints, writes }) => {
  test.each([
    { name: 'leaves a correct slice unchanged', slices: [aSlice([A])], sliceWrites: [] },
    { name: 'updates a wrong slice', slices: [aSlice([B])], sliceWrites: ['update endpointslices'] },
    { name: 'creates a missing slice', slices: [], sliceWrites: ['create endpointslices'] },
  ])('$name', async ({ slices, sliceWrites }) => {
    const cluster = memoryCluster([...endpoints, ...slices]);
    await write(cluster, outcome);
    expect(cluster.writes).toEqual([...writes, ...sliceWrites]);
    expect(cluster.find(SLICE_REF)).toMatchObject(aSlice([A]));
  });
});
