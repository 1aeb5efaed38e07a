import { describe, expect, test } from '@jest/globals';
import { boundedText, nearestName } from '../../lib/cluster/values.ts';

describe('boundedText', () => {
  test.each([
    { name: 'a short text unchanged', value: 'not found', text: 'not found' },
    { name: 'lines joined to one', value: ' first\r\n\tsecond\u2028third ', text: 'first second third' },
    { name: 'the start of a long text, and an ellipsis', value: 'x'.repeat(400_000), text: `${'x'.repeat(300)}…` },
    { name: 'no half of a character', value: `${'x'.repeat(299)}\u{1f600}`, text: `${'x'.repeat(299)}\ufffd…` },
    { name: 'a number as text', value: 7, text: '7' },
    { name: 'an absent value by its name', value: undefined, text: 'undefined' },
    {
      name: 'nested lists without reading them',
      value: JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)),
      text: 'an object',
    },
  ])('returns $name', ({ value, text }) => {
    expect(boundedText(value)).toBe(text);
  });
});

describe('the name that was probably meant', () => {
  test.each([
    { name: 'prod-eu1', known: ['prod-us-1', 'prod-eu-1'], meant: 'prod-eu-1', why: 'is a letter away' },
    { name: 'Dupl', known: ['full', 'duplicate'], meant: 'duplicate', why: 'is the only one that begins so' },
    { name: 'servers', known: ['name', 'apiServers'], meant: 'apiServers', why: 'is three letters away in any case' },
    { name: 'prod', known: ['prod-eu-1', 'prod-us-1'], meant: undefined, why: 'is neither of two that begin so' },
    { name: 'd', known: ['duplicate'], meant: undefined, why: 'is not identified by one letter' },
    { name: '', known: ['name', 'mode'], meant: undefined, why: 'is none' },
    { name: 'staging', known: ['prod-eu-1'], meant: undefined, why: 'is not one that is far away' },
    { name: 'x'.repeat(100_000), known: ['name'], meant: undefined, why: 'is shorter than what was given' },
  ])('$why', ({ name, known, meant }) => {
    expect(nearestName(name, known)).toBe(meant);
  });
});
