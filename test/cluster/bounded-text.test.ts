import { describe, expect, test } from '@jest/globals';
import { boundedText } from '../../lib/cluster/bounded-text.ts';

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
