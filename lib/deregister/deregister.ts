import { canonicalAddress } from '../allocator/ip-address.ts';
import { isWithdrawn, type Lease, withdrawnUntil } from '../leases/lease.ts';
import { newLease, withdrawn } from '../leases/lease-states.ts';
import type { ApiServerSpec, ClusterSpec } from '../spec/cluster-spec.ts';
import { MOST_SKEW_MS } from '../table/key-value-table.ts';
import { leaseOf, updateLease } from '../table/leases.ts';
import { isoTime } from '../util/values.ts';
import { type AddressRemoval, othersLive, type RemovalRequest, removeAddress } from './remove-address.ts';

export interface DeregisterRequest extends RemovalRequest {
  /** The end of the withdrawal. Default: one hour from now. Maximum: 24 hours from now. */
  readonly untilMs?: number;
  /** True if the caller is the API server's agent, because the host shuts down. Its next status 200 ends the withdrawal. */
  readonly goingDown?: boolean | undefined;
  /** True if the caller has already withdrawn the address until `untilMs`. If that withdrawal was undone, the call is refused. */
  readonly repeated?: boolean;
}

export type DeregisterResult =
  | ({ readonly outcome: 'deregistered'; readonly untilMs: number } & AddressRemoval)
  | { readonly outcome: 'refused'; readonly reason: Reason; readonly message: string }
  | { readonly outcome: 'notRegistered'; readonly message: string };

type Reason = 'callerRefused' | 'otherStack' | 'notAnAddress' | 'badEnd' | 'shared' | 'lastLiveAddress' | 'undone';

const DEFAULT_WITHDRAWAL_MS = 3_600_000;
const LONGEST_WITHDRAWAL_MS = 24 * 3_600_000;
/** The longest time from the read of an active lease to the write that publishes its address. */
const LATEST_WRITE_MS = 30_000;

/**
 * Withdraws an address in the table, and then removes it from the endpoints, as upstream's pre-shutdown hook does. A repetition
 * with a later end extends the withdrawal; an earlier end does not shorten it. @throws TableError
 */
export async function deregister(request: DeregisterRequest): Promise<DeregisterResult> {
  const { spec, table, nowMs, goingDown = false } = request;
  const address = canonicalAddress(request.address);
  if (address === undefined) return refused('notAnAddress', `"${request.address}" is not an IP address`);
  const untilMs = request.untilMs ?? nowMs() + DEFAULT_WITHDRAWAL_MS;
  if (!(untilMs > nowMs() && untilMs <= nowMs() + LONGEST_WITHDRAWAL_MS)) {
    const end = isoTime(untilMs);
    return refused('badEnd', `the withdrawal would end at ${end}: use an end in the future, at most 24 hours from now`);
  }

  const marked = await updateLease<DeregisterResult | ReturnType<typeof withdrawn>>(table, spec.name, (leases) => {
    const refusal = refusalOf({ ...request, address, untilMs }, leases);
    if (refusal !== undefined) return { result: refusal };
    const lease = withdrawn(leaseOf({ leases }, address) ?? newLease(address), { untilMs, goingDown }, nowMs());
    return { lease, result: lease };
  });
  if ('outcome' in marked) return marked;
  // Does not depend on `repeated`, because the first call may have ended before it removed the address.
  const mayBeAdded = marked.expiresAtMs > nowMs() - LATEST_WRITE_MS;
  const removal = await removeAddress({ ...request, address }, mayBeAdded);
  return { outcome: 'deregistered', untilMs: marked.withdrawnUntilMs, ...removal };
}

/** Returns a refusal, if any. The write requires unchanged `leases`, so two callers cannot withdraw the last two addresses. */
function refusalOf(
  request: DeregisterRequest & { readonly untilMs: number },
  leases: readonly Lease[],
): DeregisterResult | undefined {
  const { spec, address, nowMs, untilMs, lastOne = false, repeated = false } = request;
  const lease = leaseOf({ leases }, address);
  const isStillWithdrawn = lease?.state === 'withdrawn' && lease.withdrawnUntilMs >= untilMs;
  if (repeated && !isStillWithdrawn) {
    return refused('undone', `the withdrawal of ${address} was undone before it was removed from the endpoints`);
  }
  const server = serverAt(spec, address);
  if (spec.endpoints.reconciler === 'none') {
    return { outcome: 'notRegistered', message: `cluster ${spec.name} publishes no endpoints: its reconciler is none` };
  }
  if (server === undefined && lease === undefined) {
    const message = `${address} is not an API server of cluster ${spec.name}: it is neither in its spec nor in its leases`;
    return { outcome: 'notRegistered', message };
  }
  if (server === undefined ? lease?.host !== undefined : server.kind === 'shared') {
    const fault = `${address} is shared by several API servers (${lease?.host ?? 'kind: shared'})`;
    return refused('shared', `${fault}: remove the server behind it instead`);
  }
  // An active withdrawal may be repeated even if no other address is live, but not one that ends within the clock skew: on a
  // clock that is ahead it has already ended, and the address may have been published again.
  const isRepeated = lease !== undefined && isWithdrawn(lease, nowMs() + MOST_SKEW_MS);
  if (isRepeated || lastOne || othersLive(request, leases).length > 0) return undefined;
  const message = `${address} is the last live address: without it the kubernetes Service has no endpoints. Set lastOne to remove it anyway`;
  return refused('lastLiveAddress', message);
}

function serverAt({ apiServers }: ClusterSpec, address: string): ApiServerSpec | undefined {
  return apiServers.find((server) => 'address' in server && server.address === address);
}

export function refused(reason: Reason, message: string): DeregisterResult {
  return { outcome: 'refused', reason, message };
}

/** `wasUntilMs` is the planned end of the withdrawal. */
export type UndoResult =
  | { readonly outcome: 'undone'; readonly address: string; readonly wasUntilMs: number }
  | { readonly outcome: 'notWithdrawn'; readonly address: string }
  | { readonly outcome: 'notAnAddress' }
  | { readonly outcome: 'notRegistered' };

/** Undoes a deregistration in the table. A pass publishes the address again once a probe is answered. @throws TableError */
export async function undoDeregister(
  request: Pick<DeregisterRequest, 'spec' | 'table' | 'address' | 'nowMs'>,
): Promise<UndoResult> {
  const { spec, table, nowMs } = request;
  const address = canonicalAddress(request.address);
  if (address === undefined) return { outcome: 'notAnAddress' };
  return updateLease<UndoResult>(table, spec.name, (leases) => {
    const lease = leaseOf({ leases }, address);
    const wasUntilMs = lease && withdrawnUntil(lease, nowMs());
    if (lease?.state === 'withdrawn' && wasUntilMs !== undefined) {
      return { lease: { ...lease, withdrawnUntilMs: nowMs() }, result: { outcome: 'undone', address, wasUntilMs } };
    }
    const isKnown = lease !== undefined || serverAt(spec, address) !== undefined;
    return { result: isKnown ? { outcome: 'notWithdrawn', address } : { outcome: 'notRegistered' } };
  });
}
