/**
 * What the table knows of one API server's address: the original's lease, and what the probes saw. The item outlives
 * the lease, so that an address whose lease expired keeps its misses.
 */
export interface Lease {
  /** Canonical text. */
  readonly address: string;
  /** Grows with each refresh, as the original's does. */
  readonly generation: number;
  /** `probe`: refreshed by the kubernetes-service loop. `agent`: by the API server's own host. */
  readonly source: 'probe' | 'agent';
  /** The host name whose record this address was, if it came from one. */
  readonly host?: string;
  /** The lease is valid while this is later than now. */
  readonly expiresAtMs: number;
  /** Probes missed in a row since the last refresh, as far as they prove anything of the server. */
  readonly misses: number;
  /** When the last of them was counted. Absent in items of versions that did not date misses. */
  readonly missedAtMs?: number;
  /** The first probe since the last answer that the process which made it was too busy to receive. */
  readonly lateSinceMs?: number;
  /** Deregistered: not published before this, whatever a probe answers. */
  readonly withdrawnUntilMs?: number;
  /**
   * While withdrawn, the server was seen down or shutting down: its next 200 lifts the withdrawal. Without a
   * withdrawal: it said that it was shutting down, and until it falls silent only a 200 brings it back.
   */
  readonly seenDown: boolean;
  /** What the last probe said (`answered 200`), as far as it was written. For people; at most 200 characters. */
  readonly lastProbe?: string;
}

export function isWithdrawn(lease: Lease, nowMs: number): boolean {
  return lease.withdrawnUntilMs !== undefined && lease.withdrawnUntilMs > nowMs;
}

/** As long as its agent refreshes a lease, or has withdrawn it, no probe decides. */
export function isKeptByAgent(lease: Lease, nowMs: number): boolean {
  return lease.source === 'agent' && (lease.expiresAtMs > nowMs || isWithdrawn(lease, nowMs));
}

/** A lease is valid while it has not expired and is not withdrawn. */
export function isHeld(lease: Lease, nowMs: number): boolean {
  return lease.expiresAtMs > nowMs && !isWithdrawn(lease, nowMs);
}

/** When the lease and its withdrawal are both over. */
export function endOf({ expiresAtMs, withdrawnUntilMs = 0 }: Lease): number {
  return Math.max(expiresAtMs, withdrawnUntilMs);
}

/** What becomes of the leases of some addresses; `undefined`: the lease is removed. */
export type LeaseChanges = ReadonlyMap<string, Lease | undefined>;

/** Returns the leases after the changes, in byte order of their addresses. */
export function afterChanges(leases: readonly Lease[], changes: LeaseChanges): Lease[] {
  const kept = leases.filter(({ address }) => !changes.has(address));
  const changed = [...changes.values()].filter((lease) => lease !== undefined);
  return [...kept, ...changed].sort((one, other) => (one.address < other.address ? -1 : 1));
}
