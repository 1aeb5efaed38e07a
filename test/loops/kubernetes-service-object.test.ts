import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { SERVICE_REF as SERVICE, type ServiceObject } from '../../lib/cluster/published-objects.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { found } from '../support/found.ts';
import { turnHooksOff, type WriteAnswer } from '../support/memory-cluster.ts';
import { A, type PassWorld, settled, worldOf } from '../support/pass-world.ts';
import { stockCidr } from '../support/stock-objects.ts';

const SERVICE_CIDR = { kind: 'ServiceCIDR', name: 'kubernetes' } as const;

const REFUSED = ['Rejected', 'Forbidden'] as const;

/** Changes the type of the Service as another writer. */
function makeNodePort({ cluster }: PassWorld): void {
  const service = found(cluster.find<ServiceObject>(SERVICE));
  cluster.place({ ...service, spec: { ...service.spec, type: 'NodePort' } });
}

/** Makes each write of the Service have this outcome. */
function answerService({ cluster }: PassWorld, answer: WriteAnswer): void {
  cluster.beforeWrite = (_verb, { kind }) => (kind === 'Service' ? answer : undefined);
}

describe('the kubernetes Service of a cluster', () => {
  test('if the post-start hooks of the API server are off, the tick creates the namespace, the Service, and a ServiceCIDR with both ranges', async () => {
    const world = worldOf(A).change({ serviceClusterIPRanges: ['10.0.0.0/24', 'fd00::/112'] });
    turnHooksOff(world.cluster);
    const report = await world.tick();
    expect(report.errors).toEqual([]);
    expect(world.cluster.find(SERVICE_CIDR)).toMatchObject(stockCidr('10.0.0.0/24', 'fd00::/112'));
    const cidrs = 'created servicecidr kubernetes: 10.0.0.0/24 fd00::/112';
    const created = ['created namespace default', cidrs, 'created service default/kubernetes: 10.0.0.1'];
    expect(report.changes).toEqual(expect.arrayContaining(created));
  });

  test.each<[string, number, readonly number[], readonly string[]]>([
    ['until the allocator of the API server knows the new ServiceCIDR', 3, [50, 100, 200], [A]],
    ['for at most two seconds, and the next tick retries it', 9, [50, 100, 200, 400, 800], []],
  ])('the tick retries the creation of the Service %s', async (_, knownAfter, pauses, published) => {
    const world = worldOf(A);
    turnHooksOff(world.cluster);
    const { beforeWrite } = world.cluster;
    const pausesMs: number[] = [];
    const refused = { outcome: 'invalid', message: 'the provided network does not match the current range' } as const;
    world.cluster.beforeWrite = (verb, object) => {
      const isUnknown = world.cluster.find(SERVICE_CIDR) !== undefined && pausesMs.length < knownAfter;
      return object.kind === 'Service' && isUnknown ? refused : beforeWrite?.(verb, object);
    };
    const report = await world.tick(10_000, { pause: async (ms) => void pausesMs.push(ms) });
    expect([pausesMs, world.published()]).toEqual([pauses, published]);
    const message = expect.stringContaining(refused.message);
    expect(report.errors).toMatchObject(published.length > 0 ? [] : [{ code: 'Invalid', message }]);
    expect(report.changes).toContain('created servicecidr kubernetes: 10.0.0.0/24');
    world.cluster.beforeWrite = undefined;
    expect(await world.tick()).toMatchObject({ errors: [] });
    expect(world.published()).toEqual([A]);
  });

  const TAKEN = 'spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: already allocated';
  const DEFAULT = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } };
  const error = (code: string, message: string) => ({ code, message: expect.stringContaining(message) });
  test.each<[string, KubernetesObject[], WriteAnswer, object[]]>([
    [
      'reports the message of the API server if another Service has its address',
      [stockCidr('10.0.0.0/24')],
      { outcome: 'invalid', message: TAKEN },
      [error('Invalid', TAKEN)],
    ],
    [
      'reports that the namespace of the Service is being deleted',
      [DEFAULT],
      { outcome: 'namespaceUnavailable', message: 'is being terminated' },
      [error('NamespaceUnavailable', 'system-namespaces')],
    ],
    ['reports no error if another writer creates the Service first', [], { outcome: 'alreadyExists' }, []],
  ])('the tick does not retry the creation of the kubernetes Service, and %s', async (_, objects, answer, errors) => {
    const world = worldOf(A);
    for (const object of objects) world.cluster.place(object);
    answerService(world, answer);
    const pause = () => Promise.reject(new Error('there is nothing to wait for'));
    expect((await world.tick(10_000, { pause })).errors).toMatchObject(errors);
    expect(world.published()).toEqual(errors.length > 0 ? [] : [A]);
    expect(world.cluster.writes).not.toContain('create services');
  });

  test.each(REFUSED)('if creating the ServiceCIDR fails with %s, the Service is reported as refused', async (code) => {
    const world = worldOf(A);
    world.cluster.beforeWrite = (_verb, { kind }) => {
      if (kind === 'Service') return { outcome: 'invalid', message: 'bad address' };
      throw new ClusterError(code, 'no ServiceCIDR here');
    };
    expect(await world.tick()).toMatchObject({ errors: [{ code: 'Invalid', cause: { code } }] });
  });

  test('the tick corrects a changed Service only if the spec sets service.reconcile', async () => {
    const world = await settled(worldOf(A));
    const made = world.cluster.find<ServiceObject>(SERVICE);
    makeNodePort(world);
    await world.tick();
    expect(world.cluster.find<ServiceObject>(SERVICE)?.spec.type).toBe('NodePort');
    world.change({ service: { reconcile: true } });
    expect((await world.tick()).changes).toEqual(['updated service default/kubernetes: type and ports']);
    expect(world.cluster.find<ServiceObject>(SERVICE)?.spec).toEqual(made?.spec);
  });
});
