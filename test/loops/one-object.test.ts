import { expect, test } from '@jest/globals';
import {
  type EndpointSliceObject,
  KUBERNETES_SERVICE,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  type ServiceObject,
  SLICE_REF,
  sliceRef,
} from '../../lib/cluster/published-objects.ts';
import {
  ClusterError,
  type ClusterErrorCode,
  type ClusterPort,
  type ObjectRef,
} from '../../lib/kubernetes/cluster-port.ts';
import { aSlice } from '../support/an-endpoints.ts';
import { A, B, dualWorldOf, type PassWorld, SILENT, settled, V6, W6, worldOf } from '../support/pass-world.ts';

const UNREADABLE = ['ReplyTooLarge', 'Forbidden', 'MalformedReply'] as const;
const UNLISTABLE = ['Forbidden', 'Unavailable', 'MalformedReply'] as const;

type Call = 'get' | 'list' | 'create' | 'update' | 'delete';
type Fault = readonly [call: Call, kind: string, name: string, code: ClusterErrorCode];

/** Returns the client of the world. The call about this object fails. */
function failing({ cluster: { port } }: PassWorld, [call, kind, name, code]: Fault): ClusterPort {
  const fail = () => Promise.reject(new ClusterError(code, `${call} ${kind}: ${code}`));
  const isAbout = (given: { kind?: string; name?: string; metadata?: { name: string } }) =>
    given.kind === kind && (given.name ?? given.metadata?.name) === name;
  const object = (verb: 'create' | 'update' | 'delete') =>
    call === verb ? { [verb]: (given: never) => (isAbout(given) ? fail() : port[verb](given)) } : {};
  return {
    ...port,
    ...(call === 'get' && { get: (ref: ObjectRef) => (isAbout(ref) ? fail() : port.get(ref)) }),
    ...(call === 'list' && { list: (listed, ...args) => (listed === kind ? fail() : port.list(listed, ...args)) }),
    ...object('create'),
    ...object('update'),
    ...object('delete'),
  } as ClusterPort;
}

/** Runs a tick, makes the Service differ from the spec, and adds two slices of another writer, which passes must correct. */
async function spoilt(world: PassWorld): Promise<PassWorld> {
  const { cluster } = await settled(world);
  const service = cluster.find<ServiceObject>({ kind: 'Service', ...KUBERNETES_SERVICE });
  cluster.place({ ...service, spec: { ...service?.spec, type: 'NodePort' } } as ServiceObject);
  for (const name of ['foreign-1', 'foreign-2']) {
    const labels = { [SERVICE_NAME_LABEL]: 'kubernetes', 'endpointslice.kubernetes.io/managed-by': 'other' };
    cluster.place({ ...aSlice(['10.0.0.9']), metadata: { namespace: 'default', name, labels } });
  }
  return world.change({ endpoints: { prune: true }, service: { reconcile: true } });
}

test.each<Fault>([
  ['get', 'Service', 'kubernetes', 'ReplyTooLarge'],
  ['update', 'Service', 'kubernetes', 'Unavailable'],
  ['update', 'Service', 'kubernetes', 'DeadlineExceeded'],
  ['list', 'EndpointSlice', '', 'ReplyTooLarge'],
  ['delete', 'EndpointSlice', 'foreign-1', 'Forbidden'],
])('a pass with a failed request (%s %s %s: %s) still removes a dead server from the endpoints', async (...fault) => {
  const world = await spoilt(worldOf(A, B));
  world.answer(SILENT, B);
  const kubernetes = failing(world, fault);
  for (const { errors } of await world.ticks(4, { kubernetes })) expect(errors).toMatchObject([{ code: fault[3] }]);
  expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
  const slice = { kind: 'EndpointSlice', namespace: 'default', name: 'foreign-2' } as const;
  if (fault[0] === 'delete') expect(world.cluster.find(slice)).toBeUndefined();
});

test.each(UNREADABLE)('a pass that cannot read the Endpoints (%s) removes a dead server from slices', async (code) => {
  const world = await spoilt(dualWorldOf(A, B, V6, W6));
  world.answer(SILENT, B, W6);
  const kubernetes = failing(world, ['get', 'Endpoints', 'kubernetes', code]);
  for (const { errors } of await world.ticks(4, { kubernetes })) expect(errors).toMatchObject([{ code }]);
  expect([world.published(), world.inSlice(), world.inSlice(sliceRef('IPv6'))]).toEqual([[A, B], [A], [V6]]);
  expect(world.cluster.find<ServiceObject>(SERVICE_REF)?.spec.type).toBe('ClusterIP');
  expect(world.cluster.find({ kind: 'EndpointSlice', namespace: 'default', name: 'foreign-1' })).toBeDefined();
  const { errors, findings } = await world.tick();
  expect([world.published(), errors, findings.filter(({ type }) => type === 'twoOwners')]).toEqual([[A], [], []]);
});

test('a slice that cannot be read stays unchanged, and a pass still removes a dead API server from the Endpoints', async () => {
  const world = await settled(worldOf(A, B));
  const slice = world.cluster.find<EndpointSliceObject>(SLICE_REF);
  world.cluster.place({ ...slice, metadata: { ...slice?.metadata, labels: {} } } as EndpointSliceObject);
  world.answer(SILENT, B);
  const kubernetes = failing(world, ['get', 'EndpointSlice', 'kubernetes', 'ReplyTooLarge']);
  const reports = await world.ticks(4, { kubernetes });
  expect(reports.flatMap(({ errors }) => errors)).toMatchObject(Array(4).fill({ code: 'ReplyTooLarge' }));
  expect([world.published(), world.inSlice()]).toEqual([[A], [A, B]]);
  await world.tick();
  expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
});

test('with the reconciler "master-count", a slice stays unchanged while the Endpoints cannot be read', async () => {
  const world = (await settled(worldOf(A, B))).change({ endpoints: { reconciler: 'master-count', masterCount: 2 } });
  world.answer(SILENT, B);
  const kubernetes = failing(world, ['get', 'Endpoints', 'kubernetes', 'ReplyTooLarge']);
  await world.ticks(4, { kubernetes });
  expect({ endpoints: world.published(), slice: world.inSlice() }).toEqual({ endpoints: [A, B], slice: [A, B] });
});

test.each([
  ['Endpoints', [[A, B], [A]]],
  ['EndpointSlice', [[A], [A, B]]],
] as const)('a deregistration that cannot read %s removes the address from the other object', async (kind, left) => {
  const world = await settled(worldOf(A, B));
  const kubernetes = failing(world, ['get', kind, 'kubernetes', 'ReplyTooLarge']);
  expect(await world.deregister({ address: B, kubernetes })).toMatchObject({ stillPublished: true });
  expect([world.published(), world.inSlice()]).toEqual(left);
});

test.each(UNLISTABLE)('if the list of slices fails with %s, the pass fails with the same code', async (code) => {
  const world = await settled(worldOf(A));
  const pass = world.tick(10_000, { kubernetes: failing(world, ['list', 'EndpointSlice', '', code]) });
  await expect(pass).rejects.toMatchObject({ code });
});
