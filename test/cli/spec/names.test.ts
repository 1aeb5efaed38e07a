import { describe, expect, test } from '@jest/globals';
import { nearestName } from '../../../cli/spec/names.ts';

describe('nearestName', () => {
  test.each<[why: string, name: string, known: readonly string[], meant: string | undefined]>([
    ['returns a name that differs in one letter', 'prod-eu1', ['prod-us-1', 'prod-eu-1'], 'prod-eu-1'],
    ['returns the only name that begins with the text', 'Dupl', ['full', 'duplicate'], 'duplicate'],
    [
      'returns a name that differs in three letters, whatever their case',
      'servers',
      ['name', 'apiServers'],
      'apiServers',
    ],
    ['returns no name if two names begin with the text', 'prod', ['prod-eu-1', 'prod-us-1'], undefined],
  ])('nearestName %s', (_, name, known, meant) => {
    expect(nearestName(name, known)).toBe(meant);
  });
});
