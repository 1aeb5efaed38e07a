import type { ApiServerKind, ApiServerSpec } from '../cluster/cluster-spec.ts';
import { isHeld, isWithdrawn, type Lease } from '../cluster/lease.ts';
import type { ListedLease } from '../table/leases.ts';
import type { ApiServerStatus } from './cluster-status.ts';

/** Those of the spec in its order, each host name with its addresses; then the leases that the spec does not name. */
export function apiServerStatuses(
  apiServers: readonly ApiServerSpec[],
  leases: readonly ListedLease[],
  nowMs: number,
): ApiServerStatus[] {
  const left = new Map(leases.map((listed) => [listed.lease.address, listed]));
  const taken = (listed: ListedLease, kind?: ApiServerKind): ApiServerStatus => {
    left.delete(listed.lease.address);
    return leaseStatus(listed, kind, nowMs);
  };
  const named = new Set(apiServers.flatMap((server) => ('address' in server ? server.address : [])));
  const ofSpec = apiServers.flatMap((server): ApiServerStatus[] => {
    if ('address' in server) {
      const { address, kind } = server;
      const listed = left.get(address);
      return [listed === undefined ? { address, kind, state: 'neverSeen' } : taken(listed, kind)];
    }
    const { host, kind } = server;
    const records = [...left.values()].filter(({ lease }) => lease.host === host && !named.has(lease.address));
    return records.length === 0 ? [{ host, kind, state: 'neverSeen' }] : records.map((listed) => taken(listed, kind));
  });
  return [...ofSpec, ...[...left.values()].map((listed) => taken(listed))];
}

function leaseStatus({ lease, item }: ListedLease, kind: ApiServerKind | undefined, nowMs: number): ApiServerStatus {
  const { address, host, source, expiresAtMs, misses, generation, withdrawnUntilMs, lastProbe } = lease;
  const wasHeld = generation > 0;
  // Afterwards the item is written for other reasons: for what its probe answered.
  const untouched = wasHeld && expiresAtMs > nowMs && misses === 0 && withdrawnUntilMs === undefined;
  return {
    address,
    ...(host !== undefined && { host }),
    ...(kind !== undefined && { kind }),
    state: stateOf(lease, nowMs),
    source,
    ...(wasHeld && { expiresAtMs }),
    ...(untouched && { refreshedAtMs: item.updatedAtMs }),
    ...(withdrawnUntilMs !== undefined && { withdrawnUntilMs }),
    misses,
    ...(lastProbe !== undefined && { lastProbe }),
  };
}

function stateOf(lease: Lease, nowMs: number): ApiServerStatus['state'] {
  const awaitsAnswer = lease.source === 'probe' && lease.withdrawnUntilMs !== undefined;
  if (isWithdrawn(lease, nowMs) || awaitsAnswer) return 'withdrawn';
  return isHeld(lease, nowMs) ? 'held' : 'ranOut';
}
