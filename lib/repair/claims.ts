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
  /** The number of claims outside the spec's ranges but in a ServiceCIDR: no findings, because API servers allocate there too. */
  outside = 0;

  /** Adds a finding. Calls `make` only for a listed finding, because the texts of all findings would take too long. */
  push(type: FindingType, make: () => Finding): void {
    if (this.listed.length < MOST_LISTED) this.listed.push(make());
    else this.unlisted.set(type, (this.unlisted.get(type) ?? 0) + 1);
  }
}

/** Enters the claims of one Service into the ranges. If it returns an error, the pass ends without saving. */
export type EnterClaims = (service: ServiceClaim, findings: FindingList) => RepairError | undefined;
