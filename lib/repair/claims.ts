import type { Refusal } from '../allocator/refusal.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { CodedError } from '../util/values.ts';

export type RepairErrorCode =
  /** An allocator reported that its range is full before all claims were allocated. */
  | 'Full'
  /** An allocator refused a claim for an unexpected reason. */
  | 'Unknown'
  /** The stored content of a range does not parse. */
  | 'CorruptSnapshot'
  /** The configured range does not parse, or two ranges have the same family. */
  | 'BadRange'
  /** The Services were listed from one control plane, but the kubeconfig now leads to a different control plane. */
  | 'ControlPlaneMoved'
  /** The range was saved for a newer spec than the spec of this pass. */
  | 'OlderSpec';

/** The reason why a repair ended without saving. The message is upstream's message if upstream has the same error. */
export class RepairError extends CodedError<RepairErrorCode> {
  override readonly name = 'RepairError';
}

/** The result of a claim. `recorded`: the claim is valid. `notRecorded`: it is valid, but the stored range lacks the item. */
export type ClaimResult = 'recorded' | 'notRecorded' | Refusal;

export interface ClaimedRange {
  /** The canonical text of the range. */
  readonly spec: string;
  claim(item: string, by: ServiceClaim): ClaimResult;
}

/** The maximum number of findings that a pass lists. By default, the run record, the log line and the events show far fewer. */
const MOST_LISTED = 1_000;

/** The findings about claims: lists the first and counts the others, because every Service may have findings. */
export class FindingList {
  readonly listed: Finding[] = [];
  readonly unlisted = new Map<FindingType, number>();
  /** The number of claims outside the spec's ranges but in a ServiceCIDR. These are no findings: API servers allocate there. */
  outside = 0;

  /** Adds a finding. Calls `make` only for a listed finding, because the texts of all findings would take too long. */
  push(type: FindingType, make: () => Finding): void {
    if (this.listed.length < MOST_LISTED) this.listed.push(make());
    else this.unlisted.set(type, (this.unlisted.get(type) ?? 0) + 1);
  }
}

/** Enters the claims of one Service into the ranges. If it returns an error, the pass ends without saving. */
export type EnterClaims = (service: ServiceClaim, findings: FindingList) => RepairError | undefined;

/* The texts of findings about claims, as in `pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`. */

export interface RangeWords {
  /** The word for an item: `cluster IP` or `node port`. */
  readonly item: string;
  /** The word for the range: `service CIDR` or `port range`. */
  readonly range: string;
}

/** Upstream's texts for claims on one kind of range. */
export interface ClaimWords extends RangeWords {
  /** The word for an item at the start of a note: `Cluster IP` or `Port`. */
  readonly noteItem: string;
  /** The word for an item in texts about a claim out of range or an unknown error: `cluster IP` or `port`. */
  readonly shortItem: string;
  readonly action: string;
  readonly reasons: Readonly<Record<'notAllocated' | 'duplicate' | 'outOfRange' | 'full', string>>;
  /** Returns the text that follows the range in the message about a full range. */
  readonly full: (claim: string) => string;
}

export interface Claim {
  readonly service: ServiceClaim;
  readonly item: string;
  /** The item as messages show it: `[IPv4]:10.0.0.1` or `30000`. */
  readonly shown: string;
  readonly range: string;
}

interface Wording {
  readonly type: Finding['type'];
  readonly reason: string;
  readonly note: string;
  readonly message: string;
}

/** Reports a claim that was not recorded or was refused. Returns an error if the pass must end. */
export function reportClaim(
  words: ClaimWords,
  claim: Claim,
  result: 'notRecorded' | Refusal,
  findings: FindingList,
): RepairError | undefined {
  const type = typeOf(result);
  const wording = () => wordingOf(words, claim, result);
  findings.push(type, () => serviceFinding(claim.service, claim.item, words.action, { type, ...wording() }));
  if (result === 'notRecorded' || (type !== 'full' && type !== 'unknown')) return undefined;
  const code = type === 'full' ? 'Full' : 'Unknown';
  return new RepairError(code, wording().message, { cause: new Error(result.message) });
}

function typeOf(result: 'notRecorded' | Refusal): Finding['type'] {
  if (result === 'notRecorded') return 'repair';
  if (result.code === 'AlreadyAllocated') return 'duplicate';
  if (result.code === 'NotInRange') return 'outOfRange';
  return result.code === 'Full' ? 'full' : 'unknown';
}

function wordingOf(
  { item, noteItem, shortItem, range: rangeWord, reasons, full }: ClaimWords,
  { service, shown, range }: Claim,
  result: 'notRecorded' | Refusal,
): Omit<Wording, 'type'> {
  const by = `${shown} for service ${service.namespace}/${service.name}`;
  if (result === 'notRecorded') {
    const why = 'is not allocated; repairing';
    const [note, message] = [`${noteItem} ${shown} ${why}`, `the ${item} ${by} ${why}`];
    return { reason: reasons.notAllocated, note, message };
  }
  if (result.code === 'AlreadyAllocated') {
    const why = 'was assigned to multiple services; please recreate';
    const [note, message] = [`${noteItem} ${shown} ${why} service`, `the ${item} ${by} ${why}`];
    return { reason: reasons.duplicate, note, message };
  }
  if (result.code === 'NotInRange') {
    const why = `is not within the ${rangeWord} ${range}; please recreate`;
    const [note, message] = [`${noteItem} ${shown} ${why} service`, `the ${shortItem} ${by} ${why}`];
    return { reason: reasons.outOfRange, note, message };
  }
  if (result.code === 'Full') {
    const why = `${rangeWord} ${range} ${full(shown)}`;
    const note = `${why.charAt(0).toUpperCase()}${why.slice(1)}`;
    return { reason: reasons.full, note, message: `the ${why}` };
  }
  const why = 'due to an unknown error';
  const note = `Unable to allocate ${shortItem} ${shown} ${why}`;
  const message = `unable to allocate ${shortItem} ${by} ${why}, exiting: ${result.message}`;
  return { reason: 'UnknownError', note, message };
}

/** Returns a finding about a Service. `note` is the text of the event, and `message` is the text in the log. */
export function serviceFinding(
  service: ServiceClaim,
  item: string,
  action: string,
  { type, reason, note, message }: Wording,
): Finding {
  const { namespace, name, uid, resourceVersion } = service;
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace, name, uid, resourceVersion };
  return { type, message, item, service: `${namespace}/${name}`, event: { regarding, reason, action, note } };
}
