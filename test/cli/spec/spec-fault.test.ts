import { describe, expect, test } from '@jest/globals';
import { describeFaults, fault } from '../../../cli/spec/spec-fault.ts';

describe('the path of a fault', () => {
  test.each([
    { at: [], path: '' },
    { at: ['mode'], path: 'mode' },
    { at: ['apiServers', 1, 'probe', 'url'], path: 'apiServers[1].probe.url' },
    { at: ['intervalSeconds', 'node-port-repair'], path: 'intervalSeconds.node-port-repair' },
    { at: ['service', 'a b'], path: 'service["a b"]' },
    { at: ['a.b'], path: '["a.b"]' },
    { at: [''], path: '[""]' },
  ])('the path $at is "$path"', ({ at, path }) => {
    expect(fault(at, 'is wrong').path).toBe(path);
  });
});

describe('the description of faults', () => {
  test('the description of faults has a line for each fault, with its place, and a valid value below', () => {
    const faults = [
      { ...fault(['mode'], 'is required', 'write one of observe, enforce'), position: { line: 1, column: 1 } },
      { ...fault(['apiServers', 0, 'kind'], 'is "x"'), position: { line: 12, column: 5 } },
    ];
    expect(describeFaults('cluster.yml', faults)).toBe(
      [
        'cluster.yml: 2 faults',
        '  1:1   mode: is required',
        '        write one of observe, enforce',
        '  12:5  apiServers[0].kind: is "x"',
      ].join('\n'),
    );
  });

  test('a fault of the whole spec has no place', () => {
    expect(describeFaults('cluster.json', [fault([], 'is a list')])).toBe('cluster.json: 1 fault\n  -  is a list');
  });
});
