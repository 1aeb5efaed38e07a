// Fails a whole run when docs/upstream-tests.md names a test of ours that does not exist.
// A row's second cell holds titles ("describe › test") in backticks; titles of the conformance suite stand behind
// "conformance:", and "none:" gives the reason why there is no test.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const SEPARATOR = ' › ';

/** @returns {{row: number, suite: string, title: string}[]} */
export function titlesIn(markdown) {
  const titles = [];
  markdown.split('\n').forEach((line, index) => {
    const cells = line.split(/(?<!\\)\|/);
    if (!line.startsWith('|') || cells.length < 4 || /^\|\s*-/.test(line)) return;
    const ours = cells.slice(2, -1).join('|');
    const suite = ours.includes('conformance:') ? 'conformance' : 'unit';
    for (const match of ours.matchAll(/`([^`]+›[^`]+)`/g)) {
      titles.push({ row: index + 1, suite, title: match[1].replaceAll('\\|', '|') });
    }
  });
  return titles;
}

/** @returns {string[]} the faults, one line each */
export function missingTitles(markdown, suites, known) {
  const named = titlesIn(markdown).filter(({ suite }) => suites.has(suite));
  if (named.length === 0) return ['docs/upstream-tests.md names no test at all'];
  return named
    .filter(({ title }) => !known.has(title))
    .map(({ row, title }) => `docs/upstream-tests.md:${row}: there is no test "${title}"`);
}

export default class UpstreamTestsReporter {
  #globalConfig;
  #error;

  constructor(globalConfig) {
    this.#globalConfig = globalConfig;
  }

  onRunComplete(_contexts, results) {
    const { testPathPatterns, testNamePattern, onlyChanged, rootDir } = this.#globalConfig;
    const partial = testNamePattern || onlyChanged || (testPathPatterns?.patterns?.length ?? 0) > 0;
    if (partial || results.wasInterrupted) return;
    const known = new Set();
    const suites = new Set();
    for (const file of results.testResults) {
      suites.add(file.displayName?.name ?? 'unit');
      for (const test of file.testResults) known.add([...test.ancestorTitles, test.title].join(SEPARATOR));
    }
    const faults = missingTitles(readFileSync(join(rootDir, 'docs/upstream-tests.md'), 'utf8'), suites, known);
    if (faults.length > 0) this.#error = new Error(faults.join('\n'));
  }

  getLastError() {
    return this.#error;
  }
}
