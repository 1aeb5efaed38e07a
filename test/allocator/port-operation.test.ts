import { describe, expect, test } from '@jest/globals';
import { DryRunPortOperation, LivePortOperation } from '../../lib/allocator/port-operation.ts';
import { portRange } from '../support/ranges.ts';

const ALREADY_ALLOCATED = { code: 'AlreadyAllocated', message: 'provided port is already allocated' };

function rangeWith(...ports: number[]) {
  const range = portRange('10000-10200');
  for (const port of ports) range.allocate(port);
  return range;
}

describe('A port operation', () => {
  test('allocates at once, releases on commit, and is not rolled back after it', () => {
    const range = rangeWith(10_000);
    const operation = new LivePortOperation(range);
    expect(operation.allocate(10_010)).toBeUndefined();
    operation.releaseDeferred(10_000);
    expect([...range.items()]).toEqual([10_000, 10_010]);
    operation.commit();
    operation.finish();
    expect([...range.items()]).toEqual([10_010]);
  });

  test('gives back what it allocated, and releases nothing else, when it is not committed', () => {
    const range = rangeWith(10_000);
    const operation = new LivePortOperation(range);
    operation.allocate(10_010);
    expect(operation.allocateNext()).toHaveProperty('item');
    operation.releaseDeferred(10_000);
    expect(range.used).toBe(3);
    operation.finish();
    operation.finish();
    expect([...range.items()]).toEqual([10_000]);
  });

  test('gives back only what it was given', () => {
    const range = rangeWith(10_000);
    const operation = new LivePortOperation(range);
    expect(operation.allocate(10_000)).toMatchObject(ALREADY_ALLOCATED);
    expect(operation.allocate(1)).toMatchObject({ code: 'NotInRange' });
    operation.rollback();
    expect([...range.items()]).toEqual([10_000]);
  });

  test('tells that the range is full', () => {
    const operation = new LivePortOperation(portRange('80'));
    expect(operation.allocateNext()).toEqual({ item: 80 });
    expect(operation.allocateNext()).toMatchObject({ code: 'Full', message: 'range is full' });
  });
});

describe('A dry run of a port operation', () => {
  test('refuses what is taken, by the range or by itself, and leaves the range as it is', () => {
    const range = rangeWith(10_000, 10_010, 10_020);
    const operation = new DryRunPortOperation(range);
    expect(operation.allocate(10_000)).toMatchObject(ALREADY_ALLOCATED);
    expect(operation.allocate(10_030)).toBeUndefined();
    expect(operation.allocate(10_030)).toMatchObject(ALREADY_ALLOCATED);
    expect(operation.allocate(10_040)).toBeUndefined();
    expect(range.free).toBe(198);
  });

  test('gives a next port of its own that it then refuses', () => {
    const range = rangeWith(10_000, 10_010, 10_020);
    const operation = new DryRunPortOperation(range);
    expect(operation.allocateNext()).toEqual({ item: 32_769 });
    expect(operation.allocate(32_769)).toMatchObject(ALREADY_ALLOCATED);
    expect(operation.allocateNext()).toEqual({ item: 32_770 });
    expect(range.free).toBe(198);
  });

  test('gives the port after the highest that was asked for, in the range or not', () => {
    const operation = new DryRunPortOperation(rangeWith());
    expect(operation.allocate(12_345)).toBeUndefined();
    expect(operation.allocate(7)).toBeUndefined();
    expect(operation.allocateNext()).toEqual({ item: 12_346 });
  });

  test('gives the port after the highest also when the range has it taken', () => {
    const operation = new DryRunPortOperation(rangeWith(10_101));
    operation.allocate(10_100);
    expect(operation.allocateNext()).toEqual({ item: 10_101 });
  });

  test.each([
    { taken: [96, 97], next: 98 },
    { taken: [96, 97, 98, 99], next: 96 },
  ])('looks for a free port below 100 only: after 95, with $taken taken, it gives $next', ({ taken, next }) => {
    const range = portRange('1-200');
    for (const port of taken) range.allocate(port);
    const operation = new DryRunPortOperation(range);
    operation.allocate(95);
    expect(operation.allocateNext()).toEqual({ item: next });
  });

  test('releases nothing, whether it is committed, rolled back or only finished', () => {
    const range = rangeWith(10_000);
    const operation = new DryRunPortOperation(range);
    operation.releaseDeferred(10_000);
    operation.commit();
    operation.rollback();
    operation.finish();
    expect([...range.items()]).toEqual([10_000]);
  });
});
