import { describe, expect, test } from '@jest/globals';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { allocateUntilFull, pickLowest, portRange } from '../support/ranges.ts';

const FULL = { code: 'Full', message: 'range is full' };
const ALREADY_ALLOCATED = { code: 'AlreadyAllocated', message: 'provided port is already allocated' };
const notInRange = (spec: string) => ({
  code: 'NotInRange',
  message: `provided port is not in the valid range. The range of valid ports is ${spec}`,
});
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

describe('A range of node ports', () => {
  test('allocates each of its ports once, then is full, and allocates what was released', () => {
    const range = portRange('10000-10200');
    expect({ spec: range.spec, free: range.free, used: range.used }).toEqual({
      spec: '10000-10200',
      free: 201,
      used: 0,
    });
    expect(allocateUntilFull(range).toSorted((a, b) => a - b)).toEqual(numbers(10_000, 201));
    expect(range.allocateNext()).toMatchObject(FULL);

    range.release(10_005);
    expect({ free: range.free, used: range.used }).toEqual({ free: 1, used: 200 });
    expect(range.allocateNext()).toEqual({ item: 10_005 });

    range.release(10_005);
    expect(range.allocate(10_001)).toMatchObject(ALREADY_ALLOCATED);
    expect(range.allocate(10_005)).toBeUndefined();
    expect(range.free).toBe(0);
  });

  test.each([1, 20_000, 10_201, 9_999, -2, 10_000.5, Number.NaN])('of 10000 to 10200 does not have port %d', (port) => {
    const range = portRange('10000-10200');
    range.release(port);
    expect(range.allocate(port)).toMatchObject(notInRange('10000-10200'));
    expect({ has: range.has(port), index: range.indexOf(port), used: range.used }).toEqual({
      has: false,
      index: undefined,
      used: 0,
    });
  });

  test.each([[[]], [[10_000]], [[10_000, 10_200]], [[10_000, 10_099, 10_200]]])(
    'lists %j after they were taken',
    (ports: number[]) => {
      const range = portRange('10000-10200');
      for (const port of ports.toReversed()) expect(range.allocate(port)).toBeUndefined();
      expect([...range.items()]).toEqual(ports);
    },
  );

  test('is restored from its snapshot, and refuses that of another range', () => {
    const range = portRange('10000-10200');
    for (let taken = 0; taken < 10; taken++) range.allocateNext();
    const other = portRange('200-300');
    expect(other.restore(range.snapshot())).toMatchObject({
      code: 'MismatchedRange',
      message: 'the provided port range does not match the current port range',
    });
    expect(other.used).toBe(0);
    const copy = portRange('10000-10200');
    expect(copy.restore(range.snapshot())).toBeUndefined();
    expect([...copy.items()]).toEqual([...range.items()]);
    expect(copy.free).toBe(range.free);
  });

  test.each(['garbage', '300-200', '1-70000'])('is not made of %j', (range) => {
    expect(portRangeOf(range, pickLowest)).toMatchObject({ code: 'Unparsable' });
  });

  test('refuses another text of the same ports as another range', () => {
    expect(portRange('200-300').restore({ range: '200+100', data: fromBits([1]) })).toMatchObject({
      code: 'MismatchedRange',
    });
  });

  test('of no ports is full, and has a snapshot without a range', () => {
    const range = portRange('');
    expect(range.allocateNext()).toMatchObject(FULL);
    expect(range.snapshot()).toEqual({ range: '', data: new Uint8Array(0) });
  });

  describe('of the default 30000 to 32767', () => {
    test.each([30_000, 32_767])('has port %d, its edge', (port) => {
      expect(portRange('30000-32767').allocate(port)).toBeUndefined();
    });

    test('keeps port 30100 as bit 100, from its allocation to its release', () => {
      const range = portRange('30000-32767');
      expect(range.allocate(30_100)).toBeUndefined();
      expect(range.snapshot().data).toEqual(fromBits([100]));
      expect(range.allocate(30_100)).toMatchObject(ALREADY_ALLOCATED);
      range.release(30_100);
      expect(range.snapshot().data).toHaveLength(0);
      expect(range.allocate(30_100)).toBeUndefined();
    });

    test('allocates 2682 ports above its reserved band, then one that was released within it', () => {
      const range = portRange('30000-32767');
      expect(range.reserved).toBe(86);
      for (let taken = 0; taken < 2682; taken++) range.allocateNext();
      expect([...range.items()]).toEqual(numbers(30_086, 2682));
      for (const port of numbers(30_000, 86)) expect(range.allocate(port)).toBeUndefined();
      expect(range.allocateNext()).toMatchObject(FULL);
      range.release(30_053);
      expect(allocateUntilFull(range)).toEqual([30_053]);
    });

    test('uses its reserved band when nothing else is left', () => {
      const range = portRange('30000-32767');
      expect(allocateUntilFull(range)).toHaveLength(2768);
      expect(range.allocateNext()).toMatchObject(FULL);
    });
  });
});
