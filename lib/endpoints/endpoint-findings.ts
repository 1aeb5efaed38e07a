import type { IPFamily } from '../allocator/ip-address.ts';
import type { EventDraft, Finding } from '../cluster/finding.ts';
import {
  type EndpointSliceObject,
  KUBERNETES_SERVICE,
  MANAGED_BY_LABEL,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { isWithdrawn, type Lease, withdrawnUntil } from '../leases/lease.ts';
import type { ProbeOutcome } from '../leases/probe-outcome.ts';
import { CodedError, isoTime } from '../util/values.ts';
import type { FamilyServers } from './published-servers.ts';
import { isOwnSecondSlice } from './slices.ts';

/** Upstream's message, to the letter (`pkg/controlplane/reconcilers/lease.go`). */
export const REFUSAL =
  'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service';

const NO_SECOND = 'To delete it, set service.ipFamilyPolicy: SingleStack';
const UNREACHED = 'Start an API server, or make its probe URL reachable from here (apiServers[].probe)';

type ServersOfAFamily = Pick<FamilyServers, 'spec' | 'nowMs' | 'leases' | 'outcomes'>;

/** Returns the finding that no API server is live, and why. `second`: the second family, if only its slice is concerned. */
export function noLiveLease({ spec, nowMs, leases, outcomes }: ServersOfAFamily, second?: IPFamily): Finding {
  const withdrawn = new Map(
    leases.flatMap((lease) => {
      const untilMs = withdrawnUntil(lease, nowMs);
      return untilMs === undefined ? [] : [[lease.address, untilMs]];
    }),
  );
  const others = [...outcomes].filter(([address]) => !withdrawn.has(address));
  const [first] = withdrawn.keys();
  const reasons = [
    ...[...withdrawn].map(([address, untilMs]) => `${address} is withdrawn until ${isoTime(untilMs)}`),
    ...probeLines(others),
  ];
  const remedies = [
    second === undefined ? 'The endpoints stay unchanged' : `Its slice stays unchanged. ${NO_SECOND}`,
    ...(first === undefined ? [] : [`"kbctl deregister ${spec.name} ${first} --undo" ends a withdrawal`]),
    ...(others.length > 0 ? [UNREACHED] : []),
  ];
  const why =
    reasons.length > 0
      ? `${reasons.join('; ')}. ${remedies.join('. ')}`
      : `no address is known to probe. ${second === undefined ? '' : `${NO_SECOND}. `}Name the API servers in the spec (apiServers)`;
  const what = second === undefined ? REFUSAL : `no ${second} API server is live`;
  return { type: 'noLiveLease', message: `${what}: ${why}` };
}

/** Returns a line for each address, or one line for more than three equal answers: `100 addresses answered 404`. */
function probeLines(probed: readonly (readonly [address: string, ProbeOutcome])[]): string[] {
  const alike = Map.groupBy(probed, ([address, { detail }]) => detail.replaceAll(address, 'that address'));
  return [...alike].flatMap(([detail, some]) =>
    some.length > 3 ? `${some.length} addresses ${detail}` : some.map(([address, one]) => `${address} ${one.detail}`),
  );
}

/** The time after which a withdrawn server that has not shut down is reported. A normal shutdown takes only minutes. */
const DRAINED_WITHIN_MS = 600_000;

/**
 * Returns a finding for each withdrawn address whose server was not seen down within ten minutes after its lease expired. One
 * cause is a restored table, if its backup has withdrawals that were undone after the backup.
 */
export function standingWithdrawals(cluster: string, leases: readonly Lease[], nowMs: number): Finding[] {
  const standing = leases.filter(
    (lease) =>
      lease.state === 'withdrawn' &&
      isWithdrawn(lease, nowMs) &&
      !lease.seenDown &&
      lease.generation > 0 &&
      lease.expiresAtMs + DRAINED_WITHIN_MS <= nowMs,
  );
  return standing.map(({ address }) => {
    const message = `${address} is withdrawn, and its API server has not been seen down since. If it is to be published, run "kbctl deregister ${cluster} ${address} --undo"`;
    return { type: 'other', message, item: address };
  });
}

/** Returns a line for each address that a pass removes: `10.0.0.2 from the endpoints: its lease expired; ...`. */
export function removalLines(
  { outcomes, nowMs, leases }: Omit<ServersOfAFamily, 'spec'>,
  removed: readonly string[],
): string[] {
  return removed.map((address) => {
    const lease = leases.find((known) => known.address === address);
    const detail = outcomes.get(address)?.detail ?? lease?.lastProbe;
    return `${address} from the endpoints: ${removalReason(lease, detail, nowMs)}`;
  });
}

/** Returns an event on the kubernetes Service for each API server that a pass removed from the endpoints or added to them. */
export function serverEvents(
  { metadata }: ServiceObject,
  { removals, added }: { readonly removals: readonly string[]; readonly added: readonly string[] },
): EventDraft[] {
  const { namespace = '', name, uid = '' } = metadata;
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace, name, uid };
  const of = { regarding, action: 'EndpointsUpdate' };
  return [
    ...removals.map((line) => ({ ...of, reason: 'ApiServerRemoved', note: `removed ${line}` })),
    ...added.map((address): EventDraft => {
      return { ...of, type: 'Normal', reason: 'ApiServerReturned', note: `added ${address} to the endpoints` };
    }),
  ];
}

function removalReason(lease: Lease | undefined, detail: string | undefined, nowMs: number): string {
  if (lease === undefined) return detail ?? 'it is not an API server of the spec';
  const untilMs = withdrawnUntil(lease, nowMs);
  if (untilMs !== undefined) return `it is deregistered until ${isoTime(untilMs)}`;
  const expired = `its lease expired at ${isoTime(lease.expiresAtMs)}`;
  const cause = lease.source === 'agent' && detail === undefined ? 'its agent does not refresh it' : detail;
  return cause === undefined ? expired : `${expired}; ${cause}`;
}

/** Returns a finding for each address in `wanted` that is not live, but stays published, because `cause` prevents its removal. */
export function deadServersPublished(
  wanted: readonly string[],
  live: readonly string[],
  outcomes: ReadonlyMap<string, ProbeOutcome>,
  cause: Error,
): Finding[] {
  if (live.length === 0) return [];
  const dead = wanted.filter((address) => !live.includes(address));
  return dead.map((address) => {
    const why = outcomes.get(address)?.detail ?? 'its lease expired';
    const message = `${address} is still published although it is not live (${why}): no API server accepts its removal. ${cause.message}`;
    return { type: 'deadServerPublished', message, item: address };
  });
}

export function probeFindings(outcomes: ReadonlyMap<string, ProbeOutcome>): Finding[] {
  return [...outcomes].flatMap(([address, { verdict, odd, detail, late }]): Finding[] => {
    if (late || verdict === 'unknown') {
      const why = late ? 'this process was busy while it probed' : 'no result of the probe of';
      return [{ type: 'other', message: `${why} ${address}: ${detail}`, item: address }];
    }
    const message = `the probe of ${address}: ${detail}. Check its URL, its server name and the CA`;
    return odd ? [{ type: 'oddProbe', message, item: address }] : [];
  });
}

/** Returns a finding if another writer created the slice, or set the label `managed-by` on the slice. */
export function foreignSlice(slice: EndpointSliceObject): Finding[] {
  const owner = foreignOwner(slice);
  if (owner === undefined) return [];
  return [{ type: 'foreignSlice', message: `${owner}; this pass does not delete it`, item: slice.metadata.name }];
}

/** Returns a sentence about the owner of a slice that another writer manages; `undefined` for a slice of this project. */
export function foreignOwner(slice: EndpointSliceObject): string | undefined {
  const { metadata } = slice;
  const manager = metadata.labels?.[MANAGED_BY_LABEL];
  if (metadata.name === KUBERNETES_SERVICE.name && manager === undefined) return undefined;
  if (isOwnSecondSlice(slice)) return undefined;
  const by = manager === undefined ? 'is not ours' : `is managed by ${manager}`;
  return `EndpointSlice default/${metadata.name} of the kubernetes Service ${by}`;
}

export type EndpointsErrorCode =
  /** No address may be published. A pass never publishes an empty list of addresses. */
  | 'NoLiveLease'
  /** Another writer changed or deleted the object after the pass read it. */
  | 'Conflict'
  | 'AlreadyExists'
  /** The API server rejected an object as invalid. */
  | 'Invalid'
  /** The namespace `default` is missing, or is being deleted. */
  | 'NamespaceUnavailable';

/** The reason why a pass did not correct the Service or its endpoints. The next pass tries again. */
export class EndpointsError extends CodedError<EndpointsErrorCode> {
  override readonly name = 'EndpointsError';
}
