import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { Refusal } from '../allocator/refusal.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { CodedError } from '../cluster/values.ts';

export type RepairErrorCode =
  /** An allocator reported that its range is full while more claims followed. */
  | 'Full'
  /** An allocator refused a claim for an unexpected reason. */
  | 'Unknown'
  /** The stored content of a range does not parse. */
  | 'CorruptSnapshot'
  /** The configured range does not parse, or two ranges are of one family. */
  | 'BadRange'
  /** The kubeconfig now leads to another control plane than the one whose Services were listed. */
  | 'ControlPlaneMoved'
  /** The range was saved under a newer spec than this pass has. */
  | 'OlderSpec';

/** The reason why a repair ended before it saved anything. Messages are upstream's if it has one. */
export class RepairError extends CodedError<RepairErrorCode> {
  override readonly name = 'RepairError';
}

/** Returns an empty range of the text; an error when the text is no range. */
export type MakeRange<Item> = (text: string) => RangeAllocator<Item> | Refusal;

/** `recorded`: the claim is good. `notRecorded`: it is good, and the record lacks it. */
export type ClaimResult = 'recorded' | 'notRecorded' | Refusal;

/** Receives the claims of Services on one range. */
export interface Ledger<Item> {
  /** Canonical text of the range. */
  readonly spec: string;
  claim(item: Item, by: ServiceClaim): ClaimResult;
}

/** The most findings that a pass lists, far more than its run record, log line or events show. */
const MOST_LISTED = 1_000;

/** The first findings of a walk, and the number of the others by type: every Service may have some. */
export class FindingList {
  readonly listed: Finding[] = [];
  readonly unlisted = new Map<FindingType, number>();
  /** The number of claims outside the ranges that are no finding, because API servers allocate there too. */
  outside = 0;

  /** `make` is called only for a listed finding: the texts of all would take longer than the walk. */
  push(type: FindingType, make: () => Finding): void {
    if (this.listed.length < MOST_LISTED) this.listed.push(make());
    else this.unlisted.set(type, (this.unlisted.get(type) ?? 0) + 1);
  }
}

/** Enters the claims of one Service. An error ends the walk. */
type EnterClaims = (service: ServiceClaim, findings: FindingList) => RepairError | undefined;

/** One walk over all Services, in the order of the list. */
export class Walk {
  readonly findings = new FindingList();
  services = 0;
  readonly #enter: EnterClaims;

  constructor(enter: EnterClaims) {
    this.#enter = enter;
  }

  /** An error ends the walk and the pass: nothing may be saved. */
  visit(service: ServiceClaim): RepairError | undefined {
    this.services++;
    return this.#enter(service, this.findings);
  }
}
