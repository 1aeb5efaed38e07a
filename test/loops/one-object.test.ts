import { describe, expect, test } from '@jest/globals';
import { KUBERNETES_SERVICE, SERVICE_NAME_LABEL, type ServiceObject } from '../../lib/cluster/published-objects.ts';
import {
  ClusterError,
  type ClusterErrorCode,
  type ClusterPort,
  type ObjectRef,
} from '../../lib/kubernetes/cluster-port.ts';
import { aSlice } from '../support/an-endpoints.ts';
import { A, B, type EndpointsWorld, READY, SILENT, settled, worldOf } from '../support/endpoints-world.ts';

type Call = 'get' | 'list' | 'create' | 'update' | 'delete';
type Fault = readonly [call: Call, kind: string, name: string, code: ClusterErrorCode];

/** Returns the client of the world. The call about this object fails. */
function failing({ cluster: { port } }: EndpointsWorld, [call, kind, name, code]: Fault): ClusterPort {
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

/** Makes the Service differ from the spec, and adds two slices of another writer. */
function spoil({ cluster }: EndpointsWorld): void {
  const service = cluster.find<ServiceObject>({ kind: 'Service', ...KUBERNETES_SERVICE });
  cluster.place({ ...service, spec: { ...service?.spec, type: 'NodePort' } } as ServiceObject);
  for (const name of ['foreign-1', 'foreign-2']) {
    const labels = { [SERVICE_NAME_LABEL]: 'kubernetes', 'endpointslice.kubernetes.io/managed-by': 'other' };
    cluster.place({ ...aSlice(['10.0.0.9']), metadata: { namespace: 'default', name, labels } });
  }
}

describe('a fault of one object', () => {
  test.each<Fault>([
    ['get', 'Service', 'kubernetes', 'ReplyTooLarge'],
    ['get', 'Service', 'kubernetes', 'Forbidden'],
    ['update', 'Service', 'kubernetes', 'Forbidden'],
    ['update', 'Service', 'kubernetes', 'Rejected'],
    ['list', 'EndpointSlice', '', 'ReplyTooLarge'],
    ['delete', 'EndpointSlice', 'foreign-1', 'Forbidden'],
  ])('(%s %s %s: %s) fails the pass, and a dead API server still leaves the endpoints', async (...fault) => {
    const world = (await settled(worldOf(A, B))).change({ endpoints: { prune: true }, service: { reconcile: true } });
    spoil(world);
    world.answer(SILENT, B);
    const kubernetes = failing(world, fault);
    for (let tick = 0; tick < 4; tick++) {
      const { errors } = await world.tick(10_000, { kubernetes });
      expect(errors).toMatchObject([{ code: fault[3] }]);
    }
    expect([world.published(), world.inSlice()]).toEqual([[A], [A]]);
    const slice = { kind: 'EndpointSlice', namespace: 'default', name: 'foreign-2' } as const;
    if (fault[0] === 'delete') expect(world.cluster.find(slice)).toBeUndefined();
  });

  test('a slice that the API server refuses does not hide that the Endpoints were written', async () => {
    const world = (await settled(worldOf(A))).answer(READY, B).change({ apiServers: worldOf(A, B).spec.apiServers });
    const kubernetes = failing(world, ['update', 'EndpointSlice', 'kubernetes', 'Forbidden']);
    const { changes, errors } = await world.tick(10_000, { kubernetes });
    expect(changes).toContain(`updated endpoints default/kubernetes: ${A} ${B}`);
    expect(errors).toMatchObject([{ code: 'Forbidden' }]);
  });

  test.each(['Forbidden', 'Unavailable', 'MalformedReply'] as const)(
    'a list of slices that fails with %s is no fault of one object: the pass fails and writes nothing',
    async (code) => {
      const world = await settled(worldOf(A));
      const pass = world.tick(10_000, { kubernetes: failing(world, ['list', 'EndpointSlice', '', code]) });
      await expect(pass).rejects.toMatchObject({ code });
    },
  );
});
