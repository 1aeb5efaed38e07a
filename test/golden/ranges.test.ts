import { describe, expect } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { goldenTests } from '../support/golden.ts';
import { answered, type ExpectedRange, type RangeOperation, withLists } from '../support/golden-range.ts';
import { seededPick } from '../support/ranges.ts';

interface IpScenario {
  readonly cidr: string;
  readonly ops: readonly { readonly op: RangeOperation<string>['op']; readonly ip?: string }[];
}

interface PortScenario {
  readonly portRange: string;
  readonly ops: readonly { readonly op: RangeOperation<number>['op']; readonly port?: number }[];
}

function expectAnswers<Item>(
  range: RangeAllocator<Item> | AllocatorError,
  operations: readonly RangeOperation<Item>[],
  expected: ExpectedRange,
): void {
  expect(range instanceof AllocatorError).toBe(expected.error !== '');
  if (!(range instanceof AllocatorError)) expect(answered(range, operations)).toEqual(withLists(expected));
}

describe('An IP range answers as the original does to', () => {
  goldenTests<IpScenario, ExpectedRange>('ip-range.jsonl', '$scenario.name', ({ scenario, expected }) => {
    const operations = scenario.ops.map(({ op, ip }) => ({ op, item: ip }));
    expectAnswers(ipRangeOf(scenario.cidr, seededPick(1)), operations, expected);
  });
});

describe('A range of node ports answers as the original does to', () => {
  goldenTests<PortScenario, ExpectedRange>('port-range.jsonl', '$scenario.name', ({ scenario, expected }) => {
    const operations = scenario.ops.map(({ op, port }) => ({ op, item: port }));
    expectAnswers(portRangeOf(scenario.portRange, seededPick(1)), operations, expected);
  });
});
