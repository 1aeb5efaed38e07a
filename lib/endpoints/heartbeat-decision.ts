import { isWithdrawn, type Lease } from '../cluster/lease.ts';
import type { ProbeOutcome } from './probe-outcome.ts';
import { MISSES_TO_GO } from './published-addresses.ts';

/** What an API server's own host observes when it refreshes its lease. */
export interface HeartbeatObservation {
  readonly address: string;
  readonly lease: Lease | undefined;
  /** The probe of its API server; undefined when it was not probed, and counts as ready. */
  readonly outcome: ProbeOutcome | undefined;
  readonly nowMs: number;
  readonly leaseMs: number;
}

export interface HeartbeatDecision {
  /** `held`: refreshed. `withdrawn`: it is deregistered, and the time is not over. `down`: it was not ready. */
  readonly state: 'held' | 'withdrawn' | 'down';
  /** Absent: nothing is to be written. */
  readonly write?: Lease;
}

/**
 * Decides as the kubernetes-service loop does for the servers that it probes: a 200 ends a withdrawal if the server was
 * seen down since; a server that reports its shutdown loses its lease at once.
 */
export function decideHeartbeat(observation: HeartbeatObservation): HeartbeatDecision {
  const { lease, outcome, nowMs } = observation;
  const verdict = outcome?.verdict ?? 'ready';
  const withdrawn = lease !== undefined && isWithdrawn(lease, nowMs);
  if (verdict === 'ready' && !(withdrawn && !lease.seenDown)) return refreshed(observation);
  const isDown = verdict === 'shuttingDown' || verdict === 'miss';
  if (withdrawn) return { state: 'withdrawn', ...(isDown && markedDown(lease)) };
  if (verdict === 'alive' && !(lease?.seenDown === true && lease.withdrawnUntilMs === undefined)) {
    return refreshed(observation);
  }
  return { state: 'down', ...(lease !== undefined && withoutPlace(lease, outcome, nowMs)) };
}

function refreshed({ address, lease, nowMs, leaseMs }: HeartbeatObservation): HeartbeatDecision {
  const generation = (lease?.generation ?? 0) + 1;
  const expiresAtMs = nowMs + leaseMs;
  return { state: 'held', write: { address, generation, source: 'agent', expiresAtMs, misses: 0, seenDown: false } };
}

/** Its next 200 ends the withdrawal. */
function markedDown(lease: Lease): { readonly write?: Lease } {
  return lease.seenDown ? {} : { write: { ...lease, seenDown: true } };
}

function withoutPlace(lease: Lease, outcome: ProbeOutcome | undefined, nowMs: number): { readonly write?: Lease } {
  if (outcome?.verdict === 'shuttingDown') {
    if (lease.seenDown && lease.expiresAtMs <= nowMs) return {};
    const expiresAtMs = Math.min(lease.expiresAtMs, nowMs);
    return { write: { ...lease, expiresAtMs, misses: MISSES_TO_GO, missedAtMs: nowMs, seenDown: true } };
  }
  // Silence: the process that reported its shutdown has ended.
  return lease.seenDown && outcome?.verdict === 'miss' && !outcome.answered
    ? { write: { ...lease, seenDown: false } }
    : {};
}
