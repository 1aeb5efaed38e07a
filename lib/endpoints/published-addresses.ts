import type { ApiServerKind, ApiServerSpec, EndpointReconcilerType } from '../cluster/cluster-spec.ts';
import { isActive, isWithdrawn, type Lease } from '../cluster/lease.ts';
import { hasMissedTwice } from './next-lease.ts';

/** An address that the spec names, or that a host name of the spec stands for. */
export interface ExpectedAddress {
  /** Canonical text. */
  readonly address: string;
  readonly kind: ApiServerKind;
  readonly host?: string;
}

/** Returns the addresses of the spec, and those that leases have for its host names. */
export function knownAddresses(apiServers: readonly ApiServerSpec[], leases: readonly Lease[]): ExpectedAddress[] {
  const hosts = new Set(apiServers.flatMap((server) => ('host' in server ? server.host : [])));
  const named = apiServers.flatMap((server): ExpectedAddress[] => ('address' in server ? [server] : []));
  const isNamed = new Set(named.map(({ address }) => address));
  const resolved = leases.flatMap(({ address, host }): ExpectedAddress[] =>
    host !== undefined && hosts.has(host) && !isNamed.has(address) ? [{ address, host, kind: 'shared' }] : [],
  );
  return [...named, ...resolved];
}

/**
 * Returns the addresses to publish, in byte order. An address that is probed stays after its lease expired until two probes
 * missed, so that no outage of ours removes a healthy server; an address that is not in the spec is removed by expiry alone.
 */
export function publishedAddresses(
  leases: readonly Lease[],
  expected: readonly ExpectedAddress[],
  nowMs: number,
): string[] {
  const probed = new Set(expected.map(({ address }) => address));
  return leases
    .filter((lease) => isPublished(lease, probed.has(lease.address), nowMs))
    .map(({ address }) => address)
    .sort();
}

/**
 * Returns the addresses that must not be published. The master-count reconciler has no leases: it removes only an address
 * that was withdrawn or reported its shutdown, and one that crashed stays until another takes its place.
 */
export function excludedAddresses(
  leases: readonly Lease[],
  live: readonly string[],
  reconciler: EndpointReconcilerType,
  nowMs: number,
): string[] {
  const isKnown = (lease: Lease) =>
    reconciler !== 'master-count' || lease.state === 'shuttingDown' || isWithdrawn(lease, nowMs);
  const isLive = new Set(live);
  return leases.filter((lease) => !isLive.has(lease.address) && isKnown(lease)).map(({ address }) => address);
}

function isPublished(lease: Lease, probed: boolean, nowMs: number): boolean {
  // The first answer after a withdrawal removes the mark: until then, the lease of before proves nothing.
  if (lease.state === 'withdrawn') return lease.source === 'agent' && isActive(lease, nowMs);
  return isActive(lease, nowMs) || (probed && lease.generation > 0 && !hasMissedTwice(lease));
}
