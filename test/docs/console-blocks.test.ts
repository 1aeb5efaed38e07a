import { expect, test } from '@jest/globals';
import { isWhatIsPrinted } from '../support/console-blocks.ts';

const PRINTED =
  'ADDRESS   ENDS\n10.0.0.1   in 9m58s\n\nat http://127.0.0.1:34009/ until 2026-11-21T08:22:12.891Z\n3 seen\n';
const AT = 'at http://127.0.0.1:1/ until 2026-01-01T00:00:00Z';

test.each<[string, boolean, string[]]>([
  ['other ages, widths, ports and times', true, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT, '3 seen']],
  ['... for the rest of a line, for lines and for none', true, ['...', '10.0.0.1  ...', '...', '3 seen', '...']],
  ['another number', false, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT, '4 seen']],
  ['another address', false, ['ADDRESS  ENDS', '10.0.0.2  in 14s', '...']],
  ['a line less', false, ['ADDRESS  ENDS', '10.0.0.1  in 14s', AT]],
  ['a line more', false, ['...', '3 seen', 'more']],
  ['no output', false, []],
])('the check of a page that shows %s has the result %p', (_, isRight, page) => {
  expect(isWhatIsPrinted(PRINTED, page)).toBe(isRight);
});
