import { decideHeartbeat, type HeartbeatDecision } from '../endpoints/heartbeat-decision.ts';
import { type ProbeOutcome, type ProbeReply, probeOutcome } from '../endpoints/probe-outcome.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { putLease, readLease } from '../table/leases.ts';

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
  const listed = await readLease(table, cluster, address);
  const reply = await probe?.();
  const outcome = reply && probeOutcome(reply);
  const lease = listed?.lease;
  const { state, write } = decideHeartbeat({ address, lease, outcome, nowMs: nowMs(), leaseMs });
  const won = write === undefined || (await putLease(table, cluster, write, listed)).outcome === 'won';
  const until = lease?.withdrawnUntilMs;
  return {
    state: won ? state : 'lost',
    ...(outcome && { outcome }),
    ...(state === 'withdrawn' && until !== undefined && { withdrawnUntilMs: until }),
  };
}
