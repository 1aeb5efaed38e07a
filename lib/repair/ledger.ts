import type { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { RepairError } from './errors.ts';
import type { FindingList } from './finding-list.ts';

/** An empty range of the text; an error when the text is no range. */
export type MakeRange<Item> = (text: string) => RangeAllocator<Item> | AllocatorError;

/** `recorded`: the claim is good. `notRecorded`: it is good, and whoever allocates does not know of it. */
export type ClaimResult = 'recorded' | 'notRecorded' | AllocatorError;

/** Where the claims that Services make on one range are entered. */
export interface Ledger<Item> {
  /** Canonical text of the range. */
  readonly spec: string;
  claim(item: Item, by: ServiceClaim): ClaimResult;
}

/** One way through all Services, in the order of the list. */
export interface Walk {
  /** An error ends the walk and the pass: nothing may be saved. */
  see(service: ServiceClaim): RepairError | undefined;
  readonly services: number;
  readonly findings: FindingList;
}
