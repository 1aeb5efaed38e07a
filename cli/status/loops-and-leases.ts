import { clusterSummary } from '../../lib/dispatch/cluster-list.ts';
import { firstPassMs, overdueAfterMs } from '../../lib/dispatch/due.ts';
import { type ClusterHealth, healthOf } from '../../lib/dispatch/fleet-figures.ts';
import { isActive, isWithdrawn, type Lease } from '../../lib/leases/lease.ts';
import { type ApiServerKind, type ClusterSpec, LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { findingCounts, type RunRecord, runKey } from '../../lib/table/run-records.ts';
import { defined } from '../../lib/util/values.ts';
import type { ApiServerStatus, LoopStatus } from './cluster-status.ts';
import type { StatusInputs } from './read-inputs.ts';

export interface LoopsHealth extends ClusterHealth {
  readonly loops: readonly LoopStatus[];
}

export function loopsHealth(inputs: StatusInputs, apiServers: readonly ApiServerStatus[], nowMs: number): LoopsHealth {
  const { cluster, pausedAll, records, unreadable } = inputs;
  const health = healthOf(clusterSummary(cluster), records, { pausedAll, nowMs });
  const isUnknown = (loop: Loop) => unreadable.some(({ key }) => key === runKey(loop));
  const stateOf = (loop: Loop): LoopStatus['state'] => {
    if (health.paused) return 'paused';
    if (isUnknown(loop)) return 'unknown';
    const record = records[loop];
    if (record === undefined) return 'neverRan';
    const sinceMs = nowMs - record.startedAtMs;
    if (health.overdue.includes(loop) && sinceMs > overdueAfterMs(loop, cluster.spec)) return 'late';
    return record.outcome === 'failed' ? 'failing' : 'good';
  };
  const loops = LOOPS.map((loop): LoopStatus => {
    const { startedAtMs = 0, failuresInARow = 0, lastSuccessAtMs, wouldWrite, lastChange } = records[loop] ?? {};
    const state = stateOf(loop);
    const isAwaited = state === 'neverRan' && !health.overdue.includes(loop);
    const lastRanAtMs = loop === 'kubernetes-service' ? lastProbeAtMs(apiServers) : 0;
    return {
      loop,
      state,
      intervalSeconds: cluster.spec.intervalSeconds[loop],
      ...defined({ lastPass: lastPassOf(records[loop]) }),
      failuresInARow,
      ...defined({ lastSuccessAtMs, wouldWrite, lastChange }),
      ...(isAwaited && { firstPassAtMs: firstPassMs(loop, cluster.owner, nowMs) }),
      ...(lastRanAtMs > startedAtMs && { lastRanAtMs }),
    };
  });
  return { ...health, overdue: health.overdue.filter((loop) => !isUnknown(loop)), loops };
}

function lastPassOf(record: RunRecord | undefined): LoopStatus['lastPass'] {
  if (record === undefined) return undefined;
  const { startedAtMs, durationMs, outcome, mode, counts, error } = record;
  const findings = [...findingCounts(record).values()].reduce((sum, count) => sum + count, 0);
  return { startedAtMs, durationMs, outcome, mode, counts, ...defined({ error }), findings };
}

/** Returns the time of the last refresh by a probe. A pass ran at this time, even if it has no record. */
function lastProbeAtMs(apiServers: readonly ApiServerStatus[]): number {
  return Math.max(0, ...apiServers.map(({ source, refreshedAtMs = 0 }) => (source === 'probe' ? refreshedAtMs : 0)));
}

/** Returns the API servers in the order of the spec, each host name with its addresses, then the leases of other addresses. */
export function apiServerStatuses(
  { apiServers, endpoints }: ClusterSpec,
  leases: readonly Lease[],
  nowMs: number,
): ApiServerStatus[] {
  const left = new Map(leases.map((lease) => [lease.address, lease]));
  const statusOf = (lease: Lease, kind?: ApiServerKind): ApiServerStatus => {
    left.delete(lease.address);
    return leaseStatus(lease, kind, endpoints.leaseSeconds, nowMs);
  };
  const named = new Set(apiServers.flatMap((server) => ('address' in server ? server.address : [])));
  const ofSpec = apiServers.flatMap((server): ApiServerStatus[] => {
    const place = 'address' in server ? { address: server.address } : { host: server.host };
    const own = [...left.values()].filter(({ address, host }) =>
      'address' in server ? address === server.address : host === server.host && !named.has(address),
    );
    if (own.length === 0) return [{ ...place, kind: server.kind, state: 'neverSeen' }];
    return own.map((lease) => statusOf(lease, server.kind));
  });
  return [...ofSpec, ...[...left.values()].map((lease) => statusOf(lease))];
}

function leaseStatus(
  lease: Lease,
  kind: ApiServerKind | undefined,
  leaseSeconds: number,
  nowMs: number,
): ApiServerStatus {
  const { address, host, source, expiresAtMs, misses, generation, lastProbe } = lease;
  const wasActive = generation > 0;
  // After a miss, a withdrawal or the expiry, `expiresAtMs` does not show the last refresh.
  const untouched = wasActive && expiresAtMs > nowMs && misses === 0 && lease.state !== 'withdrawn';
  return {
    address,
    ...defined({ host, kind }),
    state: stateOf(lease, nowMs),
    source,
    ...(wasActive && { expiresAtMs }),
    // `expiresAtMs - leaseSeconds` is in the future only if the lease was refreshed under a longer `leaseSeconds`.
    ...(untouched && { refreshedAtMs: Math.min(expiresAtMs - leaseSeconds * 1000, nowMs) }),
    ...(lease.state === 'withdrawn' && { withdrawnUntilMs: lease.withdrawnUntilMs }),
    misses,
    ...defined({ lastProbe }),
  };
}

function stateOf(lease: Lease, nowMs: number): ApiServerStatus['state'] {
  const awaitsAnswer = lease.source === 'probe' && lease.state === 'withdrawn';
  if (isWithdrawn(lease, nowMs) || awaitsAnswer) return 'withdrawn';
  return isActive(lease, nowMs) ? 'active' : 'expired';
}
