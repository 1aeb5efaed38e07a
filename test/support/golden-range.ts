import { AllocatorError } from '../../lib/allocator/errors.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { allocateUntilFull } from './ranges.ts';

export interface RangeOperation<Item> {
  readonly op: 'allocate' | 'release' | 'has' | 'free' | 'used' | 'fill';
  readonly item?: Item | undefined;
}

export interface ExpectedRange {
  readonly error: string;
  readonly max: number;
  readonly offset: number;
  readonly spec: string;
  readonly ops?: readonly { readonly error: string; readonly value?: string }[];
  readonly final?: { readonly range: string; readonly data: string; readonly allocated?: readonly string[] };
}

/** An absent list and an empty one are the same. */
export function withLists(expected: ExpectedRange): ExpectedRange {
  return {
    ...expected,
    ...(expected.final && { final: { ...expected.final, allocated: expected.final.allocated ?? [] } }),
  };
}

/** What a range answers to a golden scenario, in the words of its expectation. */
export function answered<Item>(range: RangeAllocator<Item>, ops: readonly RangeOperation<Item>[]): ExpectedRange {
  const answers = ops.map((operation) => answerTo(range, operation));
  const { range: text, data } = range.snapshot();
  return {
    error: '',
    max: range.max,
    offset: range.reserved,
    spec: range.spec,
    ops: answers,
    final: { range: text, data: Buffer.from(data).toString('base64'), allocated: [...range.items()].map(String) },
  };
}

function answerTo<Item>(
  range: RangeAllocator<Item>,
  { op, item }: RangeOperation<Item>,
): { error: string; value?: string } {
  if (op === 'free' || op === 'used') return { error: '', value: String(range[op]) };
  if (op === 'fill') {
    allocateUntilFull(range);
    const refusal = range.allocateNext();
    return { error: refusal instanceof AllocatorError ? refusal.message : '' };
  }
  if (item === undefined) throw new Error(`the operation ${op} is about no item`);
  if (op === 'has') return { error: '', value: String(range.has(item)) };
  if (op === 'allocate') return { error: range.allocate(item)?.message ?? '' };
  range.release(item);
  return { error: '' };
}
