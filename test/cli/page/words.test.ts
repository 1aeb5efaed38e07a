import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { clipped, html, upTo } from '../../../cli/page/html.ts';
import { counted, grouped, percentage, relative, when } from '../../../cli/page/words.ts';

const AT = Date.UTC(2026, 10, 21, 6, 15, 39);

test('future and past differ', () => {
  expect(relative(AT + 12_000, AT)).toBe('in 12s');
  expect(relative(AT + 900, AT)).toBe('0s ago');
  expect(String(when(AT - 200_000, AT))).toBe('<time datetime="2026-11-21T06:12:19Z">3m20s ago</time>');
});

test('every number of a table is shown as a time', () => {
  fc.assert(fc.property(fc.double(), (ms) => String(when(ms, AT)).startsWith('<time datetime="')));
});

test.each([
  [0, 254, '0 %'],
  [1, 65_534, '<1 %'],
  [109, 254, '43 %'],
  [65_533, 65_534, '99 %'],
  [254, 254, '100 %'],
  [0, 0, '0 %'],
])('%d of %d is %s', (used, capacity, words) => {
  expect(percentage(used, capacity)).toBe(words);
});

test('numbers are grouped, and nouns follow them', () => {
  expect(grouped(65_534)).toBe('65,534');
  expect(counted(1, 'finding')).toBe('1 finding');
  expect(counted(2_000, 'miss', 'misses')).toBe('2,000 misses');
});

describe('a long text or list', () => {
  test('a long text or list is cut between characters', () => {
    expect(clipped('a🍵b', 2)).toBe('a…');
    expect(clipped('short')).toBe('short');
  });

  test('a long text or list is rendered within its bytes, and has the number left out', () => {
    const fitted = upTo(['a', 'b', 'c'], 17, (text) => html`<p>${text}</p>`);

    expect(String(fitted.markup)).toBe('<p>a</p><p>b</p>');
    expect(fitted).toMatchObject({ bytes: 16, left: 1 });
  });
});
