import { describe, expect, test } from '@jest/globals';
import { nodePortsOf } from '../../lib/repair/node-ports.ts';
import { service } from './services.ts';

type Claim = readonly [protocol: string, nodePort: number];

const cases: { name: string; ports: readonly Claim[]; health?: number; expected: readonly number[] }[] = [
  { name: 'a Service without ports', ports: [], expected: [] },
  {
    name: 'ports without a node port',
    ports: [
      ['TCP', 0],
      ['UDP', 0],
    ],
    expected: [],
  },
  {
    name: 'distinct ports, in the order of the Service',
    ports: [
      ['TCP', 113],
      ['TCP', 111],
      ['TCP', 112],
    ],
    expected: [113, 111, 112],
  },
  {
    name: 'one port twice under TCP',
    ports: [
      ['TCP', 111],
      ['TCP', 111],
      ['TCP', 112],
    ],
    expected: [111, 111, 112],
  },
  {
    name: 'one port twice under UDP',
    ports: [
      ['UDP', 111],
      ['UDP', 111],
      ['UDP', 112],
    ],
    expected: [111, 111, 112],
  },
  {
    name: 'one port under TCP and UDP',
    ports: [
      ['TCP', 111],
      ['TCP', 112],
      ['UDP', 111],
    ],
    expected: [111, 112],
  },
  {
    name: 'a protocol that is repeated after another',
    ports: [
      ['TCP', 111],
      ['UDP', 111],
      ['UDP', 111],
    ],
    expected: [111, 111],
  },
  {
    name: 'an absent protocol is one of its own',
    ports: [
      ['', 111],
      ['TCP', 111],
      ['', 111],
    ],
    expected: [111, 111],
  },
  {
    name: 'a health check port of its own',
    ports: [
      ['TCP', 111],
      ['TCP', 112],
    ],
    health: 113,
    expected: [111, 112, 113],
  },
  {
    name: 'a health check port that UDP uses',
    ports: [
      ['UDP', 111],
      ['TCP', 112],
    ],
    health: 111,
    expected: [111, 112],
  },
  {
    name: 'a health check port that TCP uses',
    ports: [
      ['TCP', 111],
      ['TCP', 112],
    ],
    health: 112,
    expected: [111, 112, 112],
  },
  { name: 'a health check port alone', ports: [], health: 144, expected: [144] },
];

describe('node ports of a Service', () => {
  test.each(cases)('$name', ({ ports, health = 0, expected }) => {
    const claims = ports.map(([protocol, nodePort]) => ({ protocol, nodePort }));
    expect(nodePortsOf(service('s', { ports: claims, healthCheckNodePort: health }))).toEqual(expected);
  });
});
