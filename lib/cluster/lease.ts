/**
 * The lease of one API server's address, as upstream, with the results of its probes. It is kept after its expiry, so
 * that misses are remembered.
 */
export interface Lease {
  /** Canonical text. */
  readonly address: string;
  /** Increases with each refresh, as upstream. */
  readonly generation: number;
  /** `probe`: refreshed by the kubernetes-service loop. `agent`: by the API server's own host. */
  readonly source: 'probe' | 'agent';
  /** The host name that has this address as a record, if any. */
  readonly host?: string;
  /** The lease is active until this time. */
  readonly expiresAtMs: number;
  /** Probes missed in a row since the last refresh, as far as they say anything about the server. */
  readonly misses: number;
  /** When the last miss was counted. Absent in items of versions that did not date misses. */
  readonly missedAtMs?: number;
  /** The first probe since the last answer whose reply this process was too busy to receive. */
  readonly lateSinceMs?: number;
  /** Deregistered: not published before this time, whatever a probe answers. */
  readonly withdrawnUntilMs?: number;
  /**
   * While withdrawn: the server was seen down or shutting down, so its next 200 ends the withdrawal. Otherwise: it
   * reported that it was shutting down, so only a 200 publishes it again, until it is silent.
   */
  readonly seenDown: boolean;
  /** The last recorded result of a probe (`answered 200`), for readers; at most 200 characters. */
  readonly lastProbe?: string;
}

export function isWithdrawn(lease: Lease, nowMs: number): boolean {
  return lease.withdrawnUntilMs !== undefined && lease.withdrawnUntilMs > nowMs;
}

/** While an agent refreshes or withdraws a lease, probes do not decide. */
export function isKeptByAgent(lease: Lease, nowMs: number): boolean {
  return lease.source === 'agent' && (lease.expiresAtMs > nowMs || isWithdrawn(lease, nowMs));
}

/** Returns true until the lease expires, unless it is withdrawn. */
export function isHeld(lease: Lease, nowMs: number): boolean {
  return lease.expiresAtMs > nowMs && !isWithdrawn(lease, nowMs);
}

/** Returns the time when both the lease and its withdrawal have ended. */
export function endOf({ expiresAtMs, withdrawnUntilMs = 0 }: Lease): number {
  return Math.max(expiresAtMs, withdrawnUntilMs);
}

/** The new leases by address; `undefined`: the lease is removed. */
export type LeaseChanges = ReadonlyMap<string, Lease | undefined>;

/** Returns the leases after the changes, in byte order of their addresses. */
export function afterChanges(leases: readonly Lease[], changes: LeaseChanges): Lease[] {
  const kept = leases.filter(({ address }) => !changes.has(address));
  const changed = [...changes.values()].filter((lease) => lease !== undefined);
  return [...kept, ...changed].sort((one, other) => (one.address < other.address ? -1 : 1));
}
