import { expect, test } from '@jest/globals';
import { generatedPages } from '../../tools/write-docs.ts';

test.each(generatedPages())('docs/$page is up to date: npm run docs writes it', ({ page, current, generated }) => {
  // `npm run docs` also formats the JSON.
  const parsed = (text: string) => (page.endsWith('.json') ? JSON.parse(text) : text);
  expect(parsed(generated)).toEqual(parsed(current));
});
