import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import { withdrawnUntil } from '../../lib/leases/lease.ts';
import { newLease, nextLease } from '../../lib/leases/lease-states.ts';
import { type ProbeOutcome, probeOutcome } from '../../lib/leases/probe-outcome.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../../lib/table/leases.ts';

export interface HeartbeatRequest {
  readonly table: KeyValueTable;
  readonly cluster: string;
  readonly address: string;
  readonly leaseMs: number;
  readonly nowMs: () => number;
  readonly probe: () => Promise<ProbeReply>;
}

export interface Heartbeat {
  /** `down`: the probe did not refresh the lease. `lost`: another writer wrote the lease at the same time. */
  readonly state: 'active' | 'withdrawn' | 'down' | 'lost';
  readonly outcome: ProbeOutcome;
  readonly withdrawnUntilMs?: number;
}

/**
 * Refreshes a lease from the API server's own host. The write is conditional on the lease that was read before the probe, so that
 * a change by another writer stays.
 */
export async function heartbeat(request: HeartbeatRequest): Promise<Heartbeat> {
  const { table, cluster, address, leaseMs, nowMs, probe } = request;
  const stored = await readLeases(table, cluster);
  const outcome = probeOutcome(await probe());
  const before = leaseOf(stored, address) ?? newLease(address);
  const atMs = nowMs();
  const answer = outcome.verdict;
  // Only ticks count misses. An agent needs no count: silence on the server's own host proves that the server is down.
  const event = { source: 'agent', leaseMs, provesEnd: answer === 'silence' } as const;
  const after = answer === 'unknown' ? before : nextLease(before, { answer, ...event }, atMs);
  const { written } = await changeLeases(table, cluster, stored, new Map(after === before ? [] : [[address, after]]));
  const isLost = after !== before && !written.has(address);
  const until = withdrawnUntil(after, atMs);
  const state = until !== undefined ? 'withdrawn' : after.generation > before.generation ? 'active' : 'down';
  return {
    state: isLost ? 'lost' : state,
    outcome,
    ...(!isLost && until !== undefined && { withdrawnUntilMs: until }),
  };
}
