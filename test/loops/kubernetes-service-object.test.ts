import { describe, expect, test } from '@jest/globals';
import type { ServiceObject } from '../../lib/endpoints/objects.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { A, type EndpointsWorld, worldOf } from '../support/endpoints-world.ts';

const SERVICE = { kind: 'Service', namespace: 'default', name: 'kubernetes' } as const;
const SERVICE_CIDR = { kind: 'ServiceCIDR', name: 'kubernetes' } as const;
const NAMESPACE = { kind: 'Namespace', name: 'default' } as const;

/** Another writer changes the type of the Service. */
function makeNodePort({ cluster }: EndpointsWorld): void {
  const { name, namespace } = SERVICE;
  const spec = { ...cluster.find<ServiceObject>(SERVICE)?.spec, type: 'NodePort' };
  cluster.place({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec } as ServiceObject);
}

/** An API server that wants the namespace before the Service, and the ServiceCIDR before its address. */
function withHooksOff(world: EndpointsWorld): EndpointsWorld {
  world.cluster.beforeWrite = (_verb, { kind }) => {
    if (kind !== 'Service') return undefined;
    if (world.cluster.find(NAMESPACE) === undefined) {
      return { outcome: 'namespaceUnavailable', message: 'namespaces "default" not found' };
    }
    if (world.cluster.find(SERVICE_CIDR) === undefined) return { outcome: 'invalid', message: 'no ServiceCIDR' };
    return undefined;
  };
  return world;
}

describe('the kubernetes Service of a cluster', () => {
  test('is made with what it needs when an API server has its hooks off', async () => {
    const world = withHooksOff(worldOf(A));
    const report = await world.tick();
    expect(report.errors).toEqual([]);
    expect(world.cluster.find(SERVICE_CIDR)).toMatchObject({
      apiVersion: 'networking.k8s.io/v1',
      spec: { cidrs: ['10.0.0.0/24'] },
    });
    expect(report.changes).toEqual(
      expect.arrayContaining([
        'created namespace default',
        'created servicecidr kubernetes: 10.0.0.0/24',
        'created service default/kubernetes: 10.0.0.1',
      ]),
    );
  });

  test('has a ServiceCIDR of both ranges in a dual-stack cluster', async () => {
    const world = withHooksOff(worldOf(A));
    world.spec = { ...world.spec, serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] };
    await world.tick();
    expect(world.cluster.find(SERVICE_CIDR)).toMatchObject({ spec: { cidrs: ['10.0.0.0/24', 'fd00::/112'] } });
  });

  test('is tried again in the same pass, until the allocator knows the ServiceCIDR that was made for it', async () => {
    const world = withHooksOff(worldOf(A));
    const { beforeWrite } = world.cluster;
    let known = false;
    world.cluster.beforeWrite = (verb, object) =>
      object.kind === 'Service' && world.cluster.find(SERVICE_CIDR) !== undefined && !known
        ? { outcome: 'invalid', message: 'the provided network does not match the current range' }
        : beforeWrite?.(verb, object);
    const pausesMs: number[] = [];
    const pause = async (ms: number) => {
      pausesMs.push(ms);
      known = pausesMs.length === 3;
    };
    const report = await world.tick(10_000, { pause });
    expect(report.errors).toEqual([]);
    expect(report.changes).toContain('created service default/kubernetes: 10.0.0.1');
    expect([pausesMs, world.published()]).toEqual([[50, 100, 200], [A]]);
  });

  test('is tried again at the next tick, when the allocator does not know the ServiceCIDR within two seconds', async () => {
    const world = worldOf(A);
    world.cluster.beforeWrite = (_verb, { kind }) =>
      kind === 'Service' ? { outcome: 'invalid', message: 'not ready to allocate' } : undefined;
    let pausedMs = 0;
    const pause = async (ms: number) => {
      pausedMs += ms;
    };
    const report = await world.tick(10_000, { pause });
    expect(pausedMs).toBeLessThanOrEqual(2_000);
    expect(report.errors).toMatchObject([
      { code: 'Invalid', message: expect.stringContaining('not ready to allocate') },
    ]);
    expect(report.changes).toContain('created servicecidr kubernetes: 10.0.0.0/24');
    expect(world.published()).toEqual([]);
    world.cluster.beforeWrite = undefined;
    expect(await world.tick()).toMatchObject({ errors: [] });
    expect(world.published()).toEqual([A]);
  });

  test('whose address is held by another Service is an error in the words of the API server, without another try', async () => {
    const world = worldOf(A);
    world.cluster.place({ apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'kubernetes' } });
    const message = 'spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: already allocated';
    world.cluster.beforeWrite = (_verb, { kind }) => (kind === 'Service' ? { outcome: 'invalid', message } : undefined);
    const pause = () => Promise.reject(new Error('there is nothing to wait for'));
    const report = await world.tick(10_000, { pause });
    expect(report.errors).toMatchObject([{ code: 'Invalid', message: expect.stringContaining(message) }]);
    expect(world.cluster.writes).toEqual([]);
  });

  test.each(['Rejected', 'Forbidden'] as const)('keeps that error when a ServiceCIDR is %s', async (code) => {
    const world = worldOf(A);
    world.cluster.beforeWrite = (_verb, { kind }) => {
      if (kind === 'Service') return { outcome: 'invalid', message: 'bad address' };
      throw new ClusterError(code, 'no ServiceCIDR here');
    };
    const [error] = (await world.tick()).errors;
    expect(error).toMatchObject({ code: 'Invalid', cause: { code } });
  });

  test('waits when its namespace is being deleted', async () => {
    const world = worldOf(A);
    world.cluster.place({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
    world.cluster.beforeWrite = (_verb, { kind }) =>
      kind === 'Service' ? { outcome: 'namespaceUnavailable', message: 'is being terminated' } : undefined;
    const report = await world.tick();
    expect(report.errors).toMatchObject([
      { code: 'NamespaceUnavailable', message: expect.stringContaining('system-namespaces') },
    ]);
  });

  test('that another writer created first is left unchanged, without another try', async () => {
    const world = worldOf(A);
    let tries = 0;
    world.cluster.beforeWrite = (_verb, { kind }) => {
      if (kind !== 'Service') return undefined;
      tries += 1;
      return { outcome: 'alreadyExists' };
    };
    const report = await world.tick();
    expect([report.errors, tries, world.published()]).toEqual([[], 1, [A]]);
  });

  test('is left unchanged, unless the spec sets service.reconcile', async () => {
    const world = worldOf(A);
    await world.tick();
    const made = world.cluster.find<ServiceObject>(SERVICE);
    makeNodePort(world);
    await world.tick();
    expect(world.cluster.find<ServiceObject>(SERVICE)?.spec.type).toBe('NodePort');
    world.spec = { ...world.spec, service: { ...world.spec.service, reconcile: true } };
    const report = await world.tick();
    expect(report.changes).toEqual(['updated service default/kubernetes: type and ports']);
    expect(world.cluster.find<ServiceObject>(SERVICE)?.spec).toEqual(made?.spec);
  });

  test('that changes while it is corrected does not hold up its endpoints', async () => {
    const world = worldOf(A);
    world.spec = { ...world.spec, service: { ...world.spec.service, reconcile: true } };
    await world.tick();
    makeNodePort(world);
    world.cluster.beforeWrite = (_verb, { kind }) => (kind === 'Service' ? { outcome: 'conflict' } : undefined);
    world.cluster.remove({ kind: 'Endpoints', namespace: 'default', name: 'kubernetes' });
    const report = await world.tick();
    expect(report.errors).toMatchObject([{ code: 'Conflict' }]);
    expect(world.published()).toEqual([A]);
  });

  test('cannot be read: the pass fails, and endpoints stay unchanged', async () => {
    const world = worldOf(A);
    await world.tick();
    const kubernetes: ClusterPort = {
      ...world.cluster.port,
      get: () => Promise.reject(new ClusterError('Unavailable', 'connect ECONNREFUSED')),
    };
    await expect(world.tick(10_000, { kubernetes })).rejects.toMatchObject({ code: 'Unavailable' });
    expect(world.published()).toEqual([A]);
  });
});
