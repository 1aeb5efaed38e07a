import { describe, expect, test } from '@jest/globals';
import { GUARDS, isOfRow, rowsOfSecurityPage, testFileOf } from '../guards/guards.ts';
import { edited } from '../simulation/load-with-stand-ins.ts';
import { readInRepository } from '../support/repository.ts';

const rows = rowsOfSecurityPage();

test('SECURITY.md lists the attacks', () => {
  const lines = readInRepository('SECURITY.md')
    .split('\n')
    .filter((line) => line.includes('.test.ts`'));
  expect(rows).toHaveLength(lines.length);
  expect(rows.length).toBeGreaterThan(30);
});

describe('npm run guards', () => {
  test.each(rows)(
    'the test "$title" exists in $file, and npm run guards removes a guard whose absence this test must notice',
    (row) => {
      expect(testFileOf(row)).toBeDefined();
      expect(GUARDS.some((guard) => isOfRow(guard, row))).toBe(true);
    },
  );

  const guards = GUARDS.map((guard, index) => ({ ...guard, number: index + 1 }));
  test.each(guards)('guard $number is in the code, and its test is a row of SECURITY.md', (guard) => {
    expect(rows.some((row) => isOfRow(guard, row))).toBe(true);
    for (const edit of guard.edits) {
      const source = readInRepository(edit.file);
      expect(edited(source, edit)).not.toBe(source);
    }
  });
});
