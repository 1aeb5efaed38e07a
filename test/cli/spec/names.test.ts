import { describe, expect, test } from '@jest/globals';
import { nearestName } from '../../../cli/spec/names.ts';

describe('nearestName', () => {
  test.each([
    {
      name: 'prod-eu1',
      known: ['prod-us-1', 'prod-eu-1'],
      meant: 'prod-eu-1',
      why: 'returns a name that differs in one letter',
    },
    {
      name: 'Dupl',
      known: ['full', 'duplicate'],
      meant: 'duplicate',
      why: 'returns the only name that begins with the text',
    },
    {
      name: 'servers',
      known: ['name', 'apiServers'],
      meant: 'apiServers',
      why: 'returns a name that differs in three letters, whatever their case',
    },
    {
      name: 'prod',
      known: ['prod-eu-1', 'prod-us-1'],
      meant: undefined,
      why: 'returns no name if two names begin with the text',
    },
    { name: 'd', known: ['duplicate'], meant: undefined, why: 'returns no name for one letter' },
    { name: '', known: ['name', 'mode'], meant: undefined, why: 'returns no name for an empty text' },
    { name: 'staging', known: ['prod-eu-1'], meant: undefined, why: 'returns no name that differs in many letters' },
    { name: 'x'.repeat(100_000), known: ['name'], meant: undefined, why: 'returns no name for a very long text' },
  ])('nearestName $why', ({ name, known, meant }) => {
    expect(nearestName(name, known)).toBe(meant);
  });
});
