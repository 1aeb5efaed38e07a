import { describe, expect } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { goldenTests } from '../support/golden.ts';
import { answered, type ExpectedRange, type RangeOperation, withLists } from '../support/golden-range.ts';
import { seededPick } from '../support/ranges.ts';

interface Scenario {
  readonly cidr: string;
  readonly ops: readonly { readonly op: RangeOperation<string>['op']; readonly ip?: string }[];
}

describe('An IP range answers as the original does to', () => {
  goldenTests<Scenario, ExpectedRange>('ip-range.jsonl', '$scenario.name', ({ scenario, expected }) => {
    const range = ipRangeOf(scenario.cidr, seededPick(1));
    expect(range instanceof AllocatorError).toBe(expected.error !== '');
    if (range instanceof AllocatorError) return;
    expect(
      answered(
        range,
        scenario.ops.map(({ op, ip }) => ({ op, item: ip })),
      ),
    ).toEqual(withLists(expected));
  });
});
