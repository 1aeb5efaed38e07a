/** The record of an API server's address in the table. It stays after the lease has expired, because it counts the misses. */
interface ServerRecord {
  /** The address as canonical text. */
  readonly address: string;
  /** The number of refreshes, as upstream counts them. Starts at 1 if the address was published without a lease. */
  readonly generation: number;
  /** `probe`: the kubernetes-service loop refreshed the lease. `agent`: the agent beside the API server refreshed it. */
  readonly source: 'probe' | 'agent';
  /** The host name or other source whose look-up returned this address, if any. */
  readonly host?: string;
  readonly expiresAtMs: number;
  /** The number of consecutive misses since the last refresh. A probe that failed on our side is not a miss. */
  readonly misses: number;
  /** The time at which the last miss was counted. */
  readonly missedAtMs?: number;
  /** The time of the first late probe since the last refresh. Late: this process was too busy to receive the reply in time. */
  readonly lateSinceMs?: number;
  /** The last recorded result of a probe, such as `answered 200`. It is only for display and has at most 200 characters. */
  readonly lastProbe?: string;
}

/** Upstream's lease of one address, with the results of its probes. `lib/leases/lease-states.ts` has all changes of state. */
export type Lease = ServerRecord &
  (
    | { readonly state: 'leased' }
    /**
     * The server reported that it shuts down. Until silence shows that the process has ended, only status 200 publishes the
     * address again. After that, any answer of a live server publishes it.
     */
    | { readonly state: 'shuttingDown' }
    /** The address is deregistered. It is published again after the end of the withdrawal, once the server answers. */
    | {
        readonly state: 'withdrawn';
        readonly withdrawnUntilMs: number;
        /** True if the server was seen down or shutting down since the withdrawal. Its next status 200 ends the withdrawal. */
        readonly seenDown: boolean;
      }
  );

/** Returns the end of the withdrawal of an address; `undefined` if the address is not withdrawn. */
export function withdrawnUntil(lease: Lease, nowMs: number): number | undefined {
  return lease.state === 'withdrawn' && lease.withdrawnUntilMs > nowMs ? lease.withdrawnUntilMs : undefined;
}

export function isWithdrawn(lease: Lease, nowMs: number): boolean {
  return withdrawnUntil(lease, nowMs) !== undefined;
}

/** Returns whether the lease is from an agent, and is active or withdrawn. Probes do not change such a lease. */
export function isKeptByAgent(lease: Lease, nowMs: number): boolean {
  return lease.source === 'agent' && (lease.expiresAtMs > nowMs || isWithdrawn(lease, nowMs));
}

export function isActive(lease: Lease, nowMs: number): boolean {
  return lease.expiresAtMs > nowMs && !isWithdrawn(lease, nowMs);
}

/** Returns the end of the lease, or the end of its withdrawal if that is later. */
export function endOf(lease: Lease): number {
  return Math.max(lease.expiresAtMs, lease.state === 'withdrawn' ? lease.withdrawnUntilMs : 0);
}

/** The new lease of each address; `undefined` removes the lease. */
export type LeaseChanges = ReadonlyMap<string, Lease | undefined>;

/** Returns the leases after the changes, in byte order of their addresses. */
export function afterChanges(leases: readonly Lease[], changes: LeaseChanges): Lease[] {
  const kept = leases.filter(({ address }) => !changes.has(address));
  const changed = [...changes.values()].filter((lease) => lease !== undefined);
  return [...kept, ...changed].sort((one, other) => (one.address < other.address ? -1 : 1));
}
