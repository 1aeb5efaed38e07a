import { describe, expect, test } from '@jest/globals';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { nodePortWalk } from '../../lib/repair/node-ports.ts';
import type { ClaimResult } from '../../lib/repair/walk.ts';
import { withNodePorts } from './services.ts';

const refusal = (code: AllocatorError['code'], message = 'no') => new AllocatorError(code, message);

const outcomes: {
  name: string;
  answer: ClaimResult;
  type: string;
  reason: string;
  note: string;
  message: string;
}[] = [
  {
    name: 'a port that is not recorded is repaired',
    answer: 'notRecorded',
    type: 'repair',
    reason: 'PortNotAllocated',
    note: 'Port 111 is not allocated; repairing',
    message: 'the node port 111 for service s/a is not allocated; repairing',
  },
  {
    name: 'a port that is claimed already is a duplicate',
    answer: refusal('AlreadyAllocated'),
    type: 'duplicate',
    reason: 'PortAlreadyAllocated',
    note: 'Port 111 was assigned to multiple services; please recreate service',
    message: 'the node port 111 for service s/a was assigned to multiple services; please recreate',
  },
  {
    name: 'a port outside is out of range',
    answer: refusal('NotInRange'),
    type: 'outOfRange',
    reason: 'PortOutOfRange',
    note: 'Port 111 is not within the port range 100-200; please recreate service',
    message: 'the port 111 for service s/a is not within the port range 100-200; please recreate',
  },
  {
    name: 'an allocator that says that it is full ends the walk',
    answer: refusal('Full'),
    type: 'full',
    reason: 'PortRangeFull',
    note: 'Port range 100-200 is full; you must widen the port range in order to create new services',
    message: 'the port range 100-200 is full; you must widen the port range in order to create new services',
  },
  {
    name: 'an allocator that fails for an unknown reason ends the walk',
    answer: refusal('NotReady', 'test error'),
    type: 'unknown',
    reason: 'UnknownError',
    note: 'Unable to allocate port 111 due to an unknown error',
    message: 'unable to allocate port 111 for service s/a due to an unknown error, exiting: test error',
  },
];

const ABORTS: readonly string[] = ['full', 'unknown'];

describe('a walk over node ports', () => {
  test.each(outcomes)('$name', ({ answer, type, reason, note, message }) => {
    const walk = nodePortWalk([{ spec: '100-200', claim: () => answer }]);
    const aborted = walk.visit(withNodePorts('s', 111));
    expect(walk.findings.listed).toMatchObject([
      { type, message, item: '111', event: { reason, action: 'PortAllocation', note } },
    ]);
    expect(aborted?.message).toBe(ABORTS.includes(type) ? message : undefined);
  });

  test('a port that is recorded is no finding', () => {
    const walk = nodePortWalk([{ spec: '100-200', claim: () => 'recorded' }]);
    walk.visit(withNodePorts('s', 111));
    expect(walk).toMatchObject({ services: 1, findings: { listed: [] } });
  });

  test('nothing is claimed after the walk has ended', () => {
    const claims: number[] = [];
    const claim = (port: number) => {
      claims.push(port);
      return refusal('Full');
    };
    nodePortWalk([{ spec: '100-200', claim }]).visit(withNodePorts('s', 111, 112));
    expect(claims).toEqual([111]);
  });

  test('there is exactly one range of ports', () => {
    expect(() => nodePortWalk([])).toThrow('node ports have one range');
  });
});
