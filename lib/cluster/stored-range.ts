import type { RangeSnapshot } from '../allocator/range-allocator.ts';
import type { AllocatorOfRecord } from './cluster-spec.ts';
import type { Given } from './given.ts';
import type { Hold } from './hold.ts';

/**
 * A snapshot as the table keeps it. Bitmaps are in the byte format of `data` and are numbered by the range that
 * `range` names.
 */
export interface StoredRange extends RangeSnapshot {
  /** Who allocated what is in `data`. With `apiserver` it is a picture for the maps and a record of nothing. */
  readonly allocator: AllocatorOfRecord;
  /** Spec generation under which the range was saved; an older pass or allocation ends without writing. */
  readonly generation: number;
  readonly strikes: LeakStrikes;
  /** What is taken without a Service, and by whom. Every item of them is in `data`; none is in two. */
  readonly holds: readonly Hold[];
  /** What admission gave and no pass has seen in a Service. All of it is in `data`; no item is in two. Absent: nothing. */
  readonly given?: readonly Given[];
}

/** Items seen taken but without a Service: in one counted pass, or in two. The third frees them. */
export interface LeakStrikes {
  readonly once: Uint8Array;
  readonly twice: Uint8Array;
  /** When and by which pass the last strike fell; absent when none ever did. */
  readonly last?: { readonly atMs: number; readonly passId: string };
}

export const NO_STRIKES: LeakStrikes = { once: new Uint8Array(0), twice: new Uint8Array(0) };
