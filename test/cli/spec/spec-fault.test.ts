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

test('the description of faults has a line for each fault, and a valid value below', () => {
  const faults = [fault(['mode'], 'is required', 'write one of observe, enforce'), fault([], 'is a list')];
  expect(describeFaults('cluster.yml', faults)).toBe(
    ['cluster.yml: 2 faults', '  mode: is required', '    write one of observe, enforce', '  is a list'].join('\n'),
  );
});
