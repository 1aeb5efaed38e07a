import { describe, expect } from '@jest/globals';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { allocateUntilFull, itemsOf, seededPick } from '../support/ranges.ts';
import { goldenTests } from './golden.ts';

interface Scenario {
  readonly cidr: string;
  readonly portRange: string;
  readonly ops: readonly { readonly op: RangeOperation['op']; readonly ip?: string; readonly port?: number }[];
}

interface RangeOperation {
  readonly op: 'allocate' | 'release' | 'has' | 'free' | 'used' | 'fill';
  readonly item?: string | undefined;
}

interface ExpectedRange {
  readonly error: string;
  readonly max: number;
  readonly offset: number;
  readonly spec: string;
  readonly ops?: readonly { readonly error: string; readonly value?: string }[];
  readonly final?: { readonly range: string; readonly data: string; readonly allocated?: readonly string[] };
}

function expectAnswers(
  range: RangeAllocator | Refusal,
  operations: readonly RangeOperation[],
  expected: ExpectedRange,
) {
  expect(isRefused(range)).toBe(expected.error !== '');
  if (!isRefused(range)) expect(answered(range, operations)).toEqual(withLists(expected));
}

describe('An IP range has the results of upstream', () => {
  goldenTests<Scenario, ExpectedRange>(
    'ip-range.jsonl',
    'an IP range returns the same results as upstream: $scenario.name',
    ({ scenario: { cidr, ops }, expected }) => {
      const operations = ops.map(({ op, ip }) => ({ op, item: ip }));
      expectAnswers(ipRangeOf(cidr, seededPick(1)), operations, expected);
    },
  );
});

describe('A range of node ports has the results of upstream', () => {
  goldenTests<Scenario, ExpectedRange>(
    'port-range.jsonl',
    'a range of node ports returns the same results as upstream: $scenario.name',
    ({ scenario: { portRange, ops }, expected }) => {
      const operations = ops.map(({ op, port }) => ({ op, item: port?.toString() }));
      expectAnswers(portRangeOf(portRange, seededPick(1)), operations, expected);
    },
  );
});

/** Returns the expected range. Absent lists become empty lists. */
function withLists(expected: ExpectedRange): ExpectedRange {
  return {
    ...expected,
    ...(expected.final && { final: { ...expected.final, allocated: expected.final.allocated ?? [] } }),
  };
}

/** Runs the operations of a scenario on a range, and returns the results in the format of the expected results. */
function answered(range: RangeAllocator, ops: readonly RangeOperation[]): ExpectedRange {
  const answers = ops.map((operation) => answerTo(range, operation));
  const { range: text, data } = range.snapshot();
  return {
    error: '',
    max: range.max,
    offset: range.reserved,
    spec: range.spec,
    ops: answers,
    final: { range: text, data: Buffer.from(data).toString('base64'), allocated: itemsOf(range) },
  };
}

function answerTo(range: RangeAllocator, { op, item }: RangeOperation): { error: string; value?: string } {
  if (op === 'free' || op === 'used') return { error: '', value: String(range[op]) };
  if (op === 'fill') {
    allocateUntilFull(range);
    const refusal = range.allocateNext();
    return { error: isRefused(refusal) ? refusal.message : '' };
  }
  if (item === undefined) throw new Error(`the operation ${op} is about no item`);
  if (op === 'has') return { error: '', value: String(range.has(item)) };
  if (op === 'allocate') return { error: range.allocate(item)?.message ?? '' };
  range.release(item);
  return { error: '' };
}
