import { beforeAll, describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { initialiseNodePorts } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { startHandlers } from '../support/handlers.ts';
import { kubernetesServiceObjects } from '../support/kubernetes-service-objects.ts';
import { running } from '../support/running.ts';
import { freePort } from '../support/server-process.ts';
import { runningHandlers } from './running-control-plane.ts';

interface Variant {
  readonly title: string;
  readonly advertiseAddress: string;
  /** The ranges of the API servers. Default: the default of a spec. */
  readonly serviceClusterIPRange?: string;
  readonly nodePort?: number;
  readonly reconciler?: 'lease' | 'master-count';
}

describe.each<Variant>([
  { title: 'the reconciler "lease" and a Service of type NodePort', advertiseAddress: '10.9.8.7', nodePort: 30_443 },
  {
    title: 'the reconciler "master-count" and IPv6',
    advertiseAddress: '2001:db8::7',
    serviceClusterIPRange: 'fd00:10::/112',
    reconciler: 'master-count',
  },
  { title: 'two families', advertiseAddress: '10.9.8.7', serviceClusterIPRange: '10.1.0.0/16,fd00:10::/112' },
])('with $title', (variant) => {
  const [etcd, otherEtcd] = [running(startEtcd), running(startEtcd)];
  let original: KubeApiserver;
  let without: KubeApiserver;

  // Starts two control planes with the same port: one with the reconciler of upstream, one without a reconciler.
  beforeAll(async () => {
    const { advertiseAddress, serviceClusterIPRange, nodePort = 0, reconciler = 'lease' } = variant;
    const port = await freePort('127.0.0.1', '127.0.0.2');
    const extraArgs = nodePort === 0 ? [] : [`--kubernetes-service-node-port=${nodePort}`];
    const common = { port, advertiseAddress, ...(serviceClusterIPRange !== undefined && { serviceClusterIPRange }) };
    [original, without] = await Promise.all([
      startKubeApiserver({ ...common, etcd, endpointReconcilerType: reconciler, extraArgs }),
      startKubeApiserver({ ...common, etcd: otherEtcd, bindAddress: '127.0.0.2', hooksOff: true }),
    ]);
    await initialiseNodePorts(otherEtcd);
  });
  const handlers = runningHandlers(() => ({ kubeconfigFile: without.kubeconfigFile, spec: specOf(variant, without) }));

  test('the handlers write the same Service, Endpoints and EndpointSlice as upstream, field by field', async () => {
    expect(await kubernetesServiceObjects(without)).toEqual({});

    const { summary } = await handlers.run('kubernetes-service');

    expect(summary).toEqual({ passes: 1, failed: 0, skipped: 0 });
    const theirs = await eventually(async () => {
      const objects = await kubernetesServiceObjects(original);
      expect(Object.keys(objects)).toEqual(['service', 'endpoints', 'slice']);
      return objects;
    });
    const ours = await kubernetesServiceObjects(without);
    expect(Object.keys(ours)).toEqual(['service', 'endpoints', 'slice']);
    expect(writtenFields(ours.service)).toEqual(writtenFields(theirs.service));
    expect(writtenFields(ours.endpoints)).toEqual(writtenFields(theirs.endpoints));
    expect(writtenFields(ours.slice)).toEqual(writtenFields(theirs.slice));
  });

  test('a second pass changes nothing', async () => {
    expect(await handlers.run('kubernetes-service')).toMatchObject({ changes: [], findings: [], errors: [] });
  });

  test('a pass in mode observe would change none of the objects that upstream created', async () => {
    const spec = { ...specOf(variant, original), mode: 'observe' };
    const observing = await startHandlers({ kubeconfigFile: original.kubeconfigFile, spec });
    try {
      expect(await observing.run('kubernetes-service')).toMatchObject({ wouldWrite: [], findings: [], errors: [] });
    } finally {
      await observing.close();
    }
  });
});

/** Returns the fields of a spec that has the settings of the variant and this API server. */
function specOf(
  { advertiseAddress, serviceClusterIPRange, nodePort = 0, reconciler = 'lease' }: Variant,
  server: KubeApiserver,
) {
  return {
    apiServers: [{ address: advertiseAddress, probe: { url: `${server.url}/readyz` } }],
    service: { securePort: server.port, nodePort, reconcile: true },
    endpoints: { reconciler },
    ...(serviceClusterIPRange !== undefined && { serviceClusterIPRange }),
  };
}

/** The metadata fields that differ between any two objects. */
const OF_ONE_OBJECT = new Set(['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields']);

function writtenFields(object: KubernetesObject | undefined): object | undefined {
  if (object === undefined) return undefined;
  const metadata = Object.entries(object.metadata).filter(([field]) => !OF_ONE_OBJECT.has(field));
  return { ...object, metadata: Object.fromEntries(metadata) };
}
