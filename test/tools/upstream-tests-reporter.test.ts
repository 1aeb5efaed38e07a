import { describe, expect, test } from '@jest/globals';
import { missingTitles, titlesIn } from '../../tools/upstream-tests-reporter.ts';

const PAGE = [
  '| upstream test | ours |',
  '| --- | --- |',
  '| TestA | `A thing › works`, `A thing › of a \\| b › works` and one for each other case |',
  '| TestB | none: there is no `B` |',
  '| TestC | conformance: `A cluster › stands` |',
].join('\n');

describe('the check of docs/upstream-tests.md', () => {
  test('reads every title that a row names, and of which suite it is', () => {
    expect(titlesIn(PAGE)).toEqual([
      { row: 3, suite: 'unit', title: 'A thing › works' },
      { row: 3, suite: 'unit', title: 'A thing › of a | b › works' },
      { row: 5, suite: 'conformance', title: 'A cluster › stands' },
    ]);
  });

  test('tells a title that does not exist, with its line', () => {
    expect(missingTitles(PAGE, new Set(['unit']), new Set(['A thing › works']))).toEqual([
      'docs/upstream-tests.md:3: there is no test "A thing › of a | b › works"',
    ]);
  });

  test('asks for the titles of the suite that ran, and of no other', () => {
    expect(missingTitles(PAGE, new Set(['conformance']), new Set(['A cluster › stands']))).toEqual([]);
  });

  test('is not content with a page that names nothing', () => {
    expect(missingTitles('', new Set(['unit']), new Set())).toEqual(['docs/upstream-tests.md names no test at all']);
  });
});
