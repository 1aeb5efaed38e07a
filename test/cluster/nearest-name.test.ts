import { describe, expect, test } from '@jest/globals';
import { nearestName } from '../../lib/cluster/nearest-name.ts';

describe('the name that was probably meant', () => {
  test.each([
    { name: 'prod-eu1', known: ['prod-us-1', 'prod-eu-1'], meant: 'prod-eu-1', why: 'is a letter away' },
    { name: 'Dupl', known: ['full', 'duplicate'], meant: 'duplicate', why: 'is the only one that begins so' },
    { name: 'prod', known: ['prod-eu-1', 'prod-us-1'], meant: undefined, why: 'is neither of two that begin so' },
    { name: 'd', known: ['duplicate'], meant: undefined, why: 'is not told by one letter' },
    { name: 'staging', known: ['prod-eu-1'], meant: undefined, why: 'is not one that is far away' },
  ])('of $name $why', ({ name, known, meant }) => {
    expect(nearestName(name, known)).toBe(meant);
  });
});
