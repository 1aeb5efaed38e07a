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

/** The start and the stop of single addresses, as the original's API servers do them each for its own. */
export interface AddressReconciler {
  /** Refreshes the address's lease and publishes it. Does nothing once stopped. */
  readonly reconcileAddress: (
    address: string,
    ports: readonly EndpointPort[],
    reconcilePorts: boolean,
  ) => Promise<EndpointsError | undefined>;
  /** Takes the address out; the last one only after `stopReconciling`, with leases. */
  readonly removeAddress: (address: string, ports: readonly EndpointPort[]) => Promise<EndpointsError | undefined>;
  readonly stopReconciling: () => void;
}

export interface AddressReconcilerOptions {
  readonly table: KeyValueTable;
  /** Whose leases. */
  readonly cluster: string;
  readonly kubernetes: ClusterPort;
  readonly leaseMs: number;
  readonly masterCount: number;
  readonly nowMs: () => number;
}

/**
 * The reconcilers of `pkg/controlplane/reconcilers`, by their type. Reconciling and removing wait for each other, and
 * what waited while reconciling was stopped adds nothing back. Expected refusals are returned.
 */
export function addressReconciler(type: EndpointReconcilerType, options: AddressReconcilerOptions): AddressReconciler {
  let stopped = false;
  const oneAtATime = taskQueue();
  const turns = TURNS[type];
  return {
    reconcileAddress: (address, ports, reconcilePorts) =>
      oneAtATime(async () => {
        if (stopped) return undefined;
        return turns.reconcile(options, { address, ports, reconcilePorts, stopped });
      }),
    removeAddress: (address, ports) =>
      oneAtATime(() => turns.remove(options, { address, ports, reconcilePorts: true, stopped })),
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

type TakeTurn = (options: AddressReconcilerOptions, turn: Turn) => Promise<EndpointsError | undefined>;

const nothing: TakeTurn = async () => undefined;

const TURNS: Readonly<Record<EndpointReconcilerType, { readonly reconcile: TakeTurn; readonly remove: TakeTurn }>> = {
  lease: { reconcile: refreshAndPublish, remove: removeAndPublish },
  'master-count': { reconcile: publishMaster, remove: withdrawMaster },
  none: { reconcile: nothing, remove: nothing },
};

async function refreshAndPublish(options: AddressReconcilerOptions, turn: Turn): Promise<EndpointsError | undefined> {
  const { table, cluster, leaseMs, nowMs } = options;
  const lease = { address: turn.address, source: 'probe', seenDown: false, expiresAtMs: nowMs() + leaseMs } as const;
  if (!(await refreshLease(table, cluster, lease))) {
    return new EndpointsError('Conflict', `lease ${turn.address} was written by somebody else; reconcile once more`);
  }
  return publishHeld(options, turn);
}

async function removeAndPublish(options: AddressReconcilerOptions, turn: Turn): Promise<EndpointsError | undefined> {
  const { table, cluster, nowMs } = options;
  const stored = await readLeases(table, cluster);
  const lease = leaseOf(stored, turn.address);
  if (lease === undefined || !isHeld(lease, nowMs())) {
    return new EndpointsError('LeaseNotFound', `lease ${turn.address} not found`);
  }
  const { written } = await changeLeases(table, cluster, stored, new Map([[turn.address, undefined]]));
  if (!written.has(turn.address)) {
    return new EndpointsError('Conflict', `lease ${turn.address} was refreshed meanwhile; remove it once more`);
  }
  return publishHeld(options, turn);
}

async function publishHeld(options: AddressReconcilerOptions, turn: Turn): Promise<EndpointsError | undefined> {
  const { table, cluster, kubernetes, nowMs } = options;
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  const { leases } = await readLeases(table, cluster);
  const live = leases.filter((lease) => isHeld(lease, nowMs())).map(({ address }) => address);
  const error = await apply(kubernetes, leaseEndpoints({ ...turn, current, live }));
  // Whoever made the Endpoints first is right until the next pass.
  return error?.code === 'AlreadyExists' ? undefined : error;
}

async function publishMaster(options: AddressReconcilerOptions, turn: Turn): Promise<EndpointsError | undefined> {
  const { kubernetes, masterCount } = options;
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  return apply(kubernetes, addMaster({ ...turn, current, masterCount }));
}

async function withdrawMaster({ kubernetes }: AddressReconcilerOptions, { address }: Turn) {
  const current = await kubernetes.get<EndpointsObject>(ENDPOINTS_REF);
  return apply(kubernetes, removeMaster(current, address));
}

async function apply(kubernetes: ClusterPort, decision: EndpointsDecision): Promise<EndpointsError | undefined> {
  if (decision.outcome === 'nothing') return undefined;
  if (decision.outcome === 'refused') return new EndpointsError('NoLiveLease', REFUSAL);
  const readSlice = () => kubernetes.get<EndpointSliceObject>(SLICE_REF);
  return (await writeEndpoints(kubernetes, decision, readSlice)).error;
}

/** Runs tasks in the order they came, each after the one before it ended, well or badly. */
function taskQueue(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const result = last.then(task, task);
    last = result.catch(() => undefined);
    return result;
  };
}
