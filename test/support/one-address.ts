import { writeEndpoints } from '../../lib/api-servers/write-endpoints.ts';
import type { EndpointReconcilerType } from '../../lib/cluster/cluster-spec.ts';
import { isHeld } from '../../lib/cluster/lease.ts';
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
  removeMaster,
} from '../../lib/endpoints/reconcilers.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../lib/table/leases.ts';
import { refreshLease } from './put-lease.ts';

export interface AddressReconcilerOptions {
  readonly table: KeyValueTable;
  /** Whose leases. */
  readonly cluster: string;
  readonly kubernetes: ClusterPort;
  readonly leaseMs: number;
  readonly masterCount: number;
  readonly nowMs: () => number;
}

type Result = Promise<EndpointsError | undefined>;

/** The start and the stop of single addresses, as the API servers of the original do it, each for its own. */
export interface AddressReconciler {
  /** Refreshes the lease of the address and publishes it. Does nothing once stopped. */
  readonly reconcileAddress: (address: string, ports: readonly EndpointPort[], reconcilePorts: boolean) => Result;
  /** Removes the address; the last one only after `stopReconciling`, with leases. */
  readonly removeAddress: (address: string, ports: readonly EndpointPort[]) => Result;
  readonly stopReconciling: () => void;
}

/** The reconcilers of `pkg/controlplane/reconcilers`, by their type. Expected refusals are returned. */
export function addressReconciler(type: EndpointReconcilerType, options: AddressReconcilerOptions): AddressReconciler {
  let stopped = false;
  const { reconcile, remove } = TURNS[type];
  return {
    reconcileAddress: async (address, ports, reconcilePorts) =>
      stopped ? undefined : reconcile(options, { address, ports, reconcilePorts, stopped }),
    removeAddress: (address, ports) => remove(options, { address, ports, reconcilePorts: true, stopped }),
    stopReconciling: () => {
      stopped = true;
    },
  };
}

interface Turn {
  readonly address: string;
  readonly ports: readonly EndpointPort[];
  readonly reconcilePorts: boolean;
  readonly stopped: boolean;
}

type TakeTurn = (options: AddressReconcilerOptions, turn: Turn) => Result;

const nothing: TakeTurn = async () => undefined;

const TURNS: Readonly<Record<EndpointReconcilerType, { readonly reconcile: TakeTurn; readonly remove: TakeTurn }>> = {
  lease: { reconcile: refreshAndPublish, remove: removeAndPublish },
  'master-count': { reconcile: publishMaster, remove: withdrawMaster },
  none: { reconcile: nothing, remove: nothing },
};

async function refreshAndPublish(options: AddressReconcilerOptions, turn: Turn): Result {
  const { table, cluster, leaseMs, nowMs } = options;
  const lease = { address: turn.address, source: 'probe', seenDown: false, expiresAtMs: nowMs() + leaseMs } as const;
  await refreshLease(table, cluster, lease);
  return publishHeld(options, turn);
}

async function removeAndPublish(options: AddressReconcilerOptions, turn: Turn): Result {
  const { table, cluster, nowMs } = options;
  const stored = await readLeases(table, cluster);
  const lease = leaseOf(stored, turn.address);
  if (lease === undefined || !isHeld(lease, nowMs())) {
    return new EndpointsError('LeaseNotFound', `lease ${turn.address} not found`);
  }
  await changeLeases(table, cluster, stored, new Map([[turn.address, undefined]]));
  return publishHeld(options, turn);
}

async function publishHeld(options: AddressReconcilerOptions, turn: Turn): Result {
  const { table, cluster, kubernetes, nowMs } = options;
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  const { leases } = await readLeases(table, cluster);
  const live = leases.filter((lease) => isHeld(lease, nowMs())).map(({ address }) => address);
  return apply(kubernetes, leaseEndpoints({ ...turn, current, live }));
}

async function publishMaster(options: AddressReconcilerOptions, turn: Turn): Result {
  const { kubernetes, masterCount } = options;
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  return apply(kubernetes, addMaster({ ...turn, current, masterCount }));
}

async function withdrawMaster({ kubernetes }: AddressReconcilerOptions, { address }: Turn): Result {
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  return apply(kubernetes, removeMaster(current, address));
}

async function apply(kubernetes: ClusterPort, decision: EndpointsDecision): Result {
  if (decision.outcome === 'nothing') return undefined;
  if (decision.outcome === 'refused') return new EndpointsError('NoLiveLease', REFUSAL);
  const readSlice = () => kubernetes.get<EndpointSliceObject>(SLICE_REF);
  return (await writeEndpoints(kubernetes, decision, readSlice)).error;
}
