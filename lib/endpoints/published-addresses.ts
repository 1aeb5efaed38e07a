import type { ApiServerKind, ApiServerSpec, EndpointReconcilerType } from '../cluster/cluster-spec.ts';
import { isHeld, isWithdrawn, type Lease } from '../cluster/lease.ts';

/** An address that the spec names, or that a host name of the spec stands for. */
export interface ExpectedAddress {
  /** Canonical text. */
  readonly address: string;
  readonly kind: ApiServerKind;
  readonly host?: string;
}

/** An address goes when its lease ran out *and* so many probes in a row missed. */
export const MISSES_TO_GO = 2;

/** What the spec names, and what the leases know of its host names. */
export function knownAddresses(apiServers: readonly ApiServerSpec[], leases: readonly Lease[]): ExpectedAddress[] {
  const hosts = new Set(apiServers.flatMap((server) => ('host' in server ? server.host : [])));
  const named = apiServers.flatMap((server): ExpectedAddress[] => ('address' in server ? [server] : []));
  const resolved = leases.flatMap(({ address, host }): ExpectedAddress[] =>
    host !== undefined && hosts.has(host) && !named.some((other) => other.address === address)
      ? [{ address, host, kind: 'shared' }]
      : [],
  );
  return [...named, ...resolved];
}

/**
 * Addresses to publish, in byte order. What is probed keeps its place after its lease ran out until it missed twice,
 * so that no outage of ours removes a healthy server; an agent's lease, and an address that left the spec, go by
 * expiry alone.
 */
export function publishedAddresses(
  leases: readonly Lease[],
  expected: readonly ExpectedAddress[],
  nowMs: number,
): string[] {
  const probed = new Set(expected.map(({ address }) => address));
  return leases
    .filter((lease) => isPublished(lease, probed.has(lease.address) && lease.source === 'probe', nowMs))
    .map(({ address }) => address)
    .sort((one, other) => (one < other ? -1 : 1));
}

/**
 * Addresses that are known not to be published. The master-count reconciler knows no leases: there only who withdrew
 * or said that it was shutting down is gone, and who crashed stays until somebody takes its place.
 */
export function goneAddresses(
  leases: readonly Lease[],
  live: readonly string[],
  reconciler: EndpointReconcilerType,
  nowMs: number,
): string[] {
  const saidSo = (lease: Lease) => reconciler !== 'master-count' || lease.seenDown || isWithdrawn(lease, nowMs);
  return leases.filter((lease) => !live.includes(lease.address) && saidSo(lease)).map(({ address }) => address);
}

function isPublished(lease: Lease, probed: boolean, nowMs: number): boolean {
  // Its first answer after a withdrawal takes the mark away: until then a lease that is left of before says nothing.
  if (lease.source === 'probe' && lease.withdrawnUntilMs !== undefined) return false;
  return isHeld(lease, nowMs) || (probed && lease.generation > 0 && lease.misses < MISSES_TO_GO);
}
