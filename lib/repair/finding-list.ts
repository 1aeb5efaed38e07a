import type { Finding, FindingType } from '../cluster/finding.ts';

/** Far more than a run record, a log line or the events of a pass show. */
const MOST_LISTED = 1_000;

/** What a walk finds: the first findings, and of each type the number of the others. Every Service may have some. */
export class FindingList {
  readonly listed: Finding[] = [];
  readonly unlisted = new Map<FindingType, number>();

  push(finding: Finding): void {
    if (this.listed.length < MOST_LISTED) this.listed.push(finding);
    else this.unlisted.set(finding.type, (this.unlisted.get(finding.type) ?? 0) + 1);
  }
}
