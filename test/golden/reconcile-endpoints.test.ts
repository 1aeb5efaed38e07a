import { describe, expect } from '@jest/globals';
import { writeObjects } from '../../lib/api-servers/write-objects.ts';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import {
  ENDPOINTS_REF,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  SLICE_REF,
} from '../../lib/cluster/published-objects.ts';
import { REFUSAL } from '../../lib/endpoints/endpoint-findings.ts';
import { addMaster, leaseEndpoints, type PublishingRules, removeMasters } from '../../lib/endpoints/reconcilers.ts';
import { sliceFromEndpoints, sliceWrites } from '../../lib/endpoints/slices.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { EndpointReconcilerType } from '../../lib/spec/cluster-spec.ts';
import { memoryCluster } from '../support/memory-cluster.ts';
import { goldenTests } from './golden.ts';

interface Operation {
  readonly op: 'reconcile' | 'remove' | 'stop' | 'expire';
  readonly ip?: string;
  readonly ports?: readonly EndpointPort[];
  readonly reconcilePorts?: boolean;
}

interface Scenario {
  readonly reconciler: EndpointReconcilerType;
  readonly masterCount?: number;
  readonly endpoints?: KubernetesObject;
  readonly endpointSlice?: KubernetesObject;
  readonly leases?: readonly string[];
  readonly ops: readonly Operation[];
}

interface Result {
  readonly error: string;
  readonly endpoints?: unknown;
  readonly endpointSlice?: unknown;
  readonly leases: readonly string[] | null;
  readonly writes: readonly string[] | null;
}

describe('the endpoints that both reconcilers write', () => {
  goldenTests<Scenario, readonly Result[]>(
    'reconcile-endpoints.jsonl',
    'the reconciler $scenario.reconciler writes the same endpoints as upstream: $scenario.name',
    async ({ scenario, expected }) => {
      expect((await run(scenario)).map(comparable)).toEqual(expected.map(comparable));
    },
  );
});

async function run(scenario: Scenario): Promise<Result[]> {
  const cluster = memoryCluster();
  const { endpoints, endpointSlice } = scenario;
  if (endpoints) cluster.place({ ...endpoints, apiVersion: 'v1', kind: 'Endpoints' });
  if (endpointSlice) cluster.place({ ...endpointSlice, apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
  const { reconciler: type, leases, masterCount = 1 } = scenario;
  const kubernetes = cluster.port;
  const reconciler: AddressReconciler = { type, active: new Set(leases), kubernetes, masterCount, stopped: false };
  const results: Result[] = [];
  for (const operation of scenario.ops) {
    cluster.writes.length = 0;
    const error = await perform(operation, reconciler);
    results.push({
      error: error?.message ?? '',
      endpoints: cluster.find(ENDPOINTS_REF),
      endpointSlice: cluster.find(SLICE_REF),
      leases: [...reconciler.active].sort(),
      writes: [...cluster.writes],
    });
  }
  return results;
}

async function perform(operation: Operation, reconciler: AddressReconciler): Refusal {
  const { op, ip: address = '', ports = [], reconcilePorts = false } = operation;
  switch (op) {
    case 'reconcile':
      return reconcileAddress(reconciler, { address, ports, reconcilePorts });
    case 'remove':
      return removeAddress(reconciler, { address, ports, reconcilePorts: true });
    case 'stop':
      reconciler.stopped = true;
      return undefined;
    case 'expire':
      reconciler.active.delete(address);
      return undefined;
  }
}

/**
 * Returns the value without the fields that an API server adds, and without empty lists, fields and objects, so that these equal
 * absent ones.
 */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const ignored = ['apiVersion', 'kind', 'uid', 'resourceVersion', 'managedFields'];
  const fields = Object.entries(value)
    .filter(([field]) => !ignored.includes(field))
    .map(([field, content]) => [field, comparable(content)] as const)
    .filter(([, content]) => content !== undefined && content !== null && content !== '')
    .filter(([, content]) => typeof content !== 'object' || Object.keys(content ?? {}).length > 0);
  return Object.fromEntries(fields);
}

/**
 * The state of a reconciler as in upstream's `pkg/controlplane/reconcilers`, for API servers that start and stop one after the
 * other.
 */
interface AddressReconciler {
  readonly type: EndpointReconcilerType;
  /** The addresses with an active lease. */
  readonly active: Set<string>;
  readonly kubernetes: ClusterPort;
  readonly masterCount: number;
  /** True if the reconciler was stopped: it then publishes no address, and with leases it removes even the last address. */
  stopped: boolean;
}

interface Turn extends PublishingRules {
  readonly address: string;
}

type Refusal = Promise<{ readonly message: string } | undefined>;

/** Refreshes the lease of the address and publishes the address. @returns the refusal, if upstream would also refuse */
async function reconcileAddress(reconciler: AddressReconciler, { address, ...rules }: Turn): Refusal {
  const { type, active, kubernetes, masterCount, stopped } = reconciler;
  if (stopped || type === 'none') return undefined;
  if (type === 'master-count') {
    const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
    return apply(kubernetes, current, addMaster(current, address, { ...rules, masterCount }));
  }
  active.add(address);
  return publishActive(reconciler, rules);
}

/** Removes the address. @returns the refusal, if upstream would also refuse */
async function removeAddress(reconciler: AddressReconciler, { address, ...rules }: Turn): Refusal {
  const { type, active, kubernetes } = reconciler;
  if (type === 'none') return undefined;
  if (type === 'master-count') {
    const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
    const removed = removeMasters(current, new Set([address]));
    return removed && apply(kubernetes, current, removed);
  }
  if (!active.delete(address)) return { message: `lease ${address} not found` };
  return publishActive(reconciler, rules);
}

/** Publishes the addresses with an active lease. If there is none, writes nothing, unless the reconciler is stopped. */
async function publishActive({ active, kubernetes, stopped }: AddressReconciler, rules: PublishingRules): Refusal {
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  const live = [...active].sort();
  if (current === undefined && stopped) return undefined;
  if (live.length === 0 && !stopped) return { message: REFUSAL };
  return apply(kubernetes, current, leaseEndpoints(current, live, rules));
}

async function apply(kubernetes: ClusterPort, current: EndpointsObject | undefined, next: EndpointsObject): Refusal {
  const slice = await kubernetes.get<EndpointSliceObject>(SLICE_REF);
  if (next === current) {
    return (await writeObjects(kubernetes, sliceWrites(sliceFromEndpoints(current), slice))).failure;
  }
  const write = { verb: current === undefined ? 'create' : 'update', object: next } as const;
  return (await writeObjects(kubernetes, [write, { verb: 'mirror', object: slice, prune: false }])).failure;
}
