/** What the table knows of one API server's address. It is kept after the lease expired, so that misses are remembered. */
interface ServerRecord {
  /** Canonical text. */
  readonly address: string;
  /** Increases with each refresh, as upstream. 0: the lease was never refreshed. */
  readonly generation: number;
  /** `probe`: refreshed by the kubernetes-service loop. `agent`: by the API server's own host. */
  readonly source: 'probe' | 'agent';
  /** The host name that has this address as a record, if any. */
  readonly host?: string;
  readonly expiresAtMs: number;
  /** Probes missed in a row since the last refresh. Probes that failed on our side do not count. */
  readonly misses: number;
  /** When the last miss was counted. Absent in items of versions that did not date misses. */
  readonly missedAtMs?: number;
  /** The first probe since the last answer whose reply this process was too busy to receive. */
  readonly lateSinceMs?: number;
  /** The last recorded result of a probe (`answered 200`), for readers; at most 200 characters. */
  readonly lastProbe?: string;
}

/** Upstream's lease of one address, with the results of its probes. `lib/endpoints/lease-states.ts` has all changes of state. */
export type Lease = ServerRecord &
  (
    | { readonly state: 'leased' }
    /** The server reported that it shuts down. Until it is silent, only a 200 publishes the address again. */
    | { readonly state: 'shuttingDown' }
    /** Deregistered: not published before the end, and then not before the server answers. */
    | {
        readonly state: 'withdrawn';
        readonly withdrawnUntilMs: number;
        /** Whether the server was down or shutting down since the withdrawal. If so, its next status 200 ends the withdrawal. */
        readonly seenDown: boolean;
      }
  );

/** Returns when the withdrawal of an address ends; undefined if it is not withdrawn. */
export function withdrawnUntil(lease: Lease, nowMs: number): number | undefined {
  return lease.state === 'withdrawn' && lease.withdrawnUntilMs > nowMs ? lease.withdrawnUntilMs : undefined;
}

export function isWithdrawn(lease: Lease, nowMs: number): boolean {
  return withdrawnUntil(lease, nowMs) !== undefined;
}

/** While an agent refreshes or withdraws a lease, probes do not decide. */
export function isKeptByAgent(lease: Lease, nowMs: number): boolean {
  return lease.source === 'agent' && (lease.expiresAtMs > nowMs || isWithdrawn(lease, nowMs));
}

export function isActive(lease: Lease, nowMs: number): boolean {
  return lease.expiresAtMs > nowMs && !isWithdrawn(lease, nowMs);
}

/** Returns the time when both the lease and its withdrawal have ended. */
export function endOf(lease: Lease): number {
  return Math.max(lease.expiresAtMs, lease.state === 'withdrawn' ? lease.withdrawnUntilMs : 0);
}

/** The new leases by address; `undefined`: the lease is removed. */
export type LeaseChanges = ReadonlyMap<string, Lease | undefined>;

/** Returns the leases after the changes, in byte order of their addresses. */
export function afterChanges(leases: readonly Lease[], changes: LeaseChanges): Lease[] {
  const kept = leases.filter(({ address }) => !changes.has(address));
  const changed = [...changes.values()].filter((lease) => lease !== undefined);
  return [...kept, ...changed].sort((one, other) => (one.address < other.address ? -1 : 1));
}
