import { describe, expect } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { goldenTests } from '../support/golden.ts';
import { answered, type ExpectedRange, type RangeOperation, withLists } from '../support/golden-range.ts';
import { seededPick } from '../support/ranges.ts';

interface Scenario {
  readonly portRange: string;
  readonly ops: readonly { readonly op: RangeOperation<number>['op']; readonly port?: number }[];
}

describe('A range of node ports answers as the original does to', () => {
  goldenTests<Scenario, ExpectedRange>('port-range.jsonl', '$scenario.name', ({ scenario, expected }) => {
    const range = portRangeOf(scenario.portRange, seededPick(1));
    expect(range instanceof AllocatorError).toBe(expected.error !== '');
    if (range instanceof AllocatorError) return;
    expect(
      answered(
        range,
        scenario.ops.map(({ op, port }) => ({ op, item: port })),
      ),
    ).toEqual(withLists(expected));
  });
});
