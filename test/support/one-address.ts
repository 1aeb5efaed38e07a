import { writeEndpoints } from '../../lib/api-servers/write-endpoints.ts';
import type { EndpointReconcilerType } from '../../lib/cluster/cluster-spec.ts';
import { isActive } from '../../lib/cluster/lease.ts';
import { EndpointsError } from '../../lib/endpoints/endpoint-findings.ts';
import {
  ENDPOINTS_REF,
  type EndpointPort,
  type EndpointSliceObject,
  type EndpointsObject,
  SLICE_REF,
} from '../../lib/endpoints/objects.ts';
import {
  addMaster,
  type EndpointsDecision,
  leaseEndpoints,
  REFUSAL,
  removeMasters,
} from '../../lib/endpoints/reconcilers.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../lib/table/leases.ts';
import { refreshLease } from './put-lease.ts';

/** One reconciler of `pkg/controlplane/reconcilers`, where API servers start and stop one by one. */
export interface AddressReconciler {
  readonly type: EndpointReconcilerType;
  readonly table: KeyValueTable;
  /** Whose leases. */
  readonly cluster: string;
  readonly kubernetes: ClusterPort;
  readonly leaseMs: number;
  readonly masterCount: number;
  readonly nowMs: number;
  /** After this it publishes nothing, and with leases removes even the last address. */
  stopped: boolean;
}

interface Turn {
  readonly address: string;
  readonly ports: readonly EndpointPort[];
  readonly reconcilePorts: boolean;
}

type Result = Promise<Error | undefined>;

/** Refreshes the lease of the address and publishes it. Expected refusals are returned. */
export async function reconcileAddress(reconciler: AddressReconciler, turn: Turn): Result {
  const { type, table, cluster, kubernetes, leaseMs, masterCount, nowMs, stopped } = reconciler;
  if (stopped || type === 'none') return undefined;
  if (type === 'master-count') {
    const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
    return apply(kubernetes, addMaster({ ...turn, current, masterCount }));
  }
  await refreshLease(table, cluster, { address: turn.address, expiresAtMs: nowMs + leaseMs });
  return publishHeld(reconciler, turn);
}

/** Removes the address. Expected refusals are returned. */
export async function removeAddress(reconciler: AddressReconciler, turn: Turn): Result {
  const { type, table, cluster, kubernetes, nowMs } = reconciler;
  if (type === 'none') return undefined;
  if (type === 'master-count') {
    const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
    return apply(kubernetes, removeMasters(current, new Set([turn.address])));
  }
  const stored = await readLeases(table, cluster);
  const lease = leaseOf(stored, turn.address);
  if (lease === undefined || !isActive(lease, nowMs)) {
    return new Error(`lease ${turn.address} not found`);
  }
  await changeLeases(table, cluster, stored, new Map([[turn.address, undefined]]));
  return publishHeld(reconciler, turn);
}

async function publishHeld({ table, cluster, kubernetes, nowMs, stopped }: AddressReconciler, turn: Turn): Result {
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  const { leases } = await readLeases(table, cluster);
  const live = leases.filter((lease) => isActive(lease, nowMs)).map(({ address }) => address);
  return apply(kubernetes, leaseEndpoints({ ...turn, current, live, stopped }));
}

async function apply(kubernetes: ClusterPort, decision: EndpointsDecision): Result {
  if (decision.outcome === 'nothing') return undefined;
  if (decision.outcome === 'refused') return new EndpointsError('NoLiveLease', REFUSAL);
  const slice = await kubernetes.get<EndpointSliceObject>(SLICE_REF);
  return (await writeEndpoints(kubernetes, decision, slice)).error;
}
