import { decideHeartbeat, type HeartbeatDecision } from '../endpoints/heartbeat-decision.ts';
import { type ProbeOutcome, type ProbeReply, probeOutcome } from '../endpoints/probe-outcome.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { changeLeases, leaseOf, readLeases } from '../table/leases.ts';

export interface HeartbeatRequest {
  readonly table: KeyValueTable;
  readonly cluster: string;
  /** Canonical text. */
  readonly address: string;
  readonly leaseMs: number;
  /** This host's clock, corrected. */
  readonly nowMs: () => number;
  /** Probes this host's API server. Absent: it is not probed, and counts as ready. */
  readonly probe?: () => Promise<ProbeReply>;
}

export interface Heartbeat {
  /** `lost`: another writer wrote the lease at the same time. */
  readonly state: HeartbeatDecision['state'] | 'lost';
  readonly outcome?: ProbeOutcome;
  readonly withdrawnUntilMs?: number;
}

/**
 * One refresh of a lease by the API server's own host, in place of a probe. It is conditional on what was read before the
 * server was probed: another writer, such as a deregistration, wins.
 * @throws TableError
 */
export async function heartbeat(request: HeartbeatRequest): Promise<Heartbeat> {
  const { table, cluster, address, leaseMs, nowMs, probe } = request;
  const stored = await readLeases(table, cluster);
  const reply = await probe?.();
  const outcome = reply && probeOutcome(reply);
  const lease = leaseOf(stored, address);
  const { state, write } = decideHeartbeat({ address, lease, outcome, nowMs: nowMs(), leaseMs });
  const { written } = await changeLeases(table, cluster, stored, new Map(write && [[address, write]]));
  const until = lease?.withdrawnUntilMs;
  return {
    state: write === undefined || written.has(address) ? state : 'lost',
    ...(outcome && { outcome }),
    ...(state === 'withdrawn' && until !== undefined && { withdrawnUntilMs: until }),
  };
}
