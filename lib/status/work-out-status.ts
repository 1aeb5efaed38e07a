import { type ApiServerKind, type ApiServerSpec, LOOPS } from '../cluster/cluster-spec.ts';
import { isHeld, isWithdrawn, type Lease } from '../cluster/lease.ts';
import { pauseInForce } from '../dispatch/due.ts';
import type { ListedLease } from '../table/leases.ts';
import { attentionFor } from './attention.ts';
import type {
  ApiServerStatus,
  Attention,
  ClusterStatus,
  FindingStatus,
  Health,
  PauseStatus,
} from './cluster-status.ts';
import { findingHint } from './explanations.ts';
import { type LoopsStanding, loopsStanding } from './loop-status.ts';
import { rangeStatuses } from './range-status.ts';
import type { StatusInputs } from './status-inputs.ts';

/** How a cluster is, from what the table has of it. */
export function workOutStatus(inputs: StatusInputs, nowMs: number): ClusterStatus {
  const { spec, generation, owner } = inputs.cluster;
  const standing = loopsStanding(inputs, nowMs);
  const apiServers = apiServerStatuses(spec.apiServers, inputs.leases, nowMs);
  const { ranges, unreadable: unreadableRanges } = rangeStatuses(inputs, nowMs);
  const findings = findingsOf(inputs);
  const unreadable = [...inputs.unreadable, ...unreadableRanges];
  const attention = attentionFor({ inputs, standing, apiServers, ranges, findings, unreadable, nowMs });
  const paused = pauseOf(inputs, nowMs);
  return {
    name: spec.name,
    mode: spec.mode,
    allocator: spec.allocator,
    generation,
    ...(owner && { owner: { stack: owner.stack, packaged: owner.packaged !== undefined } }),
    ...(paused && { paused }),
    health: healthOf(attention, standing),
    attention,
    apiServers,
    loops: standing.loops,
    ranges,
    findings,
    unreadable: unreadable.map(({ message }) => message),
  };
}

/** The hold on all clusters before its own: ending the latter would not let it go on. */
function pauseOf({ cluster, pausedAll }: StatusInputs, nowMs: number): PauseStatus | undefined {
  const pause = pauseInForce([pausedAll, cluster.paused], nowMs);
  return pause && { untilMs: pause.untilMs, reason: pause.reason, by: pause.by, all: pause === pausedAll };
}

function findingsOf({ cluster, records }: StatusInputs): FindingStatus[] {
  return LOOPS.flatMap((loop) => {
    const { findings = [], startedAtMs = 0 } = records[loop] ?? {};
    return findings.map(
      (finding): FindingStatus => ({
        loop,
        ...finding,
        seenAtMs: startedAtMs,
        mend: findingHint(finding, cluster.spec),
      }),
    );
  });
}

function healthOf(attention: readonly Attention[], { loops, paused }: LoopsStanding): Health {
  if (attention.some(({ level }) => level === 'bad')) return 'bad';
  if (attention.length > 0) return 'warning';
  if (paused) return 'paused';
  return loops.some(({ state }) => state === 'neverRan') ? 'unknown' : 'good';
}

/** Those of the spec in its order, each host name with its addresses; then the leases that the spec does not name. */
function apiServerStatuses(
  apiServers: readonly ApiServerSpec[],
  leases: readonly ListedLease[],
  nowMs: number,
): ApiServerStatus[] {
  const left = new Map(leases.map((listed) => [listed.lease.address, listed]));
  const taken = (listed: ListedLease, kind?: ApiServerKind): ApiServerStatus => {
    left.delete(listed.lease.address);
    return leaseStatus(listed, kind, nowMs);
  };
  const named = new Set(apiServers.flatMap((server) => ('address' in server ? server.address : [])));
  const ofSpec = apiServers.flatMap((server): ApiServerStatus[] => {
    if ('address' in server) {
      const { address, kind } = server;
      const listed = left.get(address);
      return [listed === undefined ? { address, kind, state: 'neverSeen' } : taken(listed, kind)];
    }
    const { host, kind } = server;
    const records = [...left.values()].filter(({ lease }) => lease.host === host && !named.has(lease.address));
    return records.length === 0 ? [{ host, kind, state: 'neverSeen' }] : records.map((listed) => taken(listed, kind));
  });
  return [...ofSpec, ...[...left.values()].map((listed) => taken(listed))];
}

function leaseStatus({ lease, item }: ListedLease, kind: ApiServerKind | undefined, nowMs: number): ApiServerStatus {
  const { address, host, source, expiresAtMs, misses, generation, withdrawnUntilMs, lastProbe } = lease;
  const wasHeld = generation > 0;
  // Afterwards the item is written for other reasons: for what its probe answered.
  const untouched = wasHeld && expiresAtMs > nowMs && misses === 0 && withdrawnUntilMs === undefined;
  return {
    address,
    ...(host !== undefined && { host }),
    ...(kind !== undefined && { kind }),
    state: stateOf(lease, nowMs),
    source,
    ...(wasHeld && { expiresAtMs }),
    ...(untouched && { refreshedAtMs: item.updatedAtMs }),
    ...(withdrawnUntilMs !== undefined && { withdrawnUntilMs }),
    misses,
    ...(lastProbe !== undefined && { lastProbe }),
  };
}

function stateOf(lease: Lease, nowMs: number): ApiServerStatus['state'] {
  const awaitsAnswer = lease.source === 'probe' && lease.withdrawnUntilMs !== undefined;
  if (isWithdrawn(lease, nowMs) || awaitsAnswer) return 'withdrawn';
  return isHeld(lease, nowMs) ? 'held' : 'ranOut';
}
