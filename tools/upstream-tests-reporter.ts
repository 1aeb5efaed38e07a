import { readFileSync } from 'node:fs';
import path from 'node:path';

const PAGE = 'docs/upstream-tests.md';

interface NamedTitle {
  readonly row: number;
  readonly suite: string;
  readonly title: string;
}

/**
 * The titles that the page's rows name: in backticks, `describe › test`. Those of the conformance suite stand behind
 * "conformance:". "none:" gives the reason why there is no test.
 */
export function titlesIn(markdown: string): NamedTitle[] {
  return markdown.split('\n').flatMap((line, index) => {
    const cells = line.split(/(?<!\\)\|/);
    if (!line.startsWith('|') || cells.length < 4) return [];
    const ours = cells.slice(2, -1).join('|');
    const suite = ours.includes('conformance:') ? 'conformance' : 'unit';
    const titles = [...ours.matchAll(/`([^`]+›[^`]+)`/g)].map(([, title = '']) => title.replaceAll('\\|', '|'));
    return titles.map((title) => ({ row: index + 1, suite, title }));
  });
}

/** The faults of the page, one line each, given the suites that ran and all their titles. */
export function missingTitles(markdown: string, suites: ReadonlySet<string>, known: ReadonlySet<string>): string[] {
  const named = titlesIn(markdown);
  if (named.length === 0) return [`${PAGE} names no test at all`];
  return named
    .filter(({ suite, title }) => suites.has(suite) && !known.has(title))
    .map(({ row, title }) => `${PAGE}:${row}: there is no test "${title}"`);
}

interface GlobalConfig {
  readonly rootDir: string;
  readonly testNamePattern?: string;
  readonly onlyChanged: boolean;
  readonly testPathPatterns: { readonly patterns: readonly string[] };
}

interface Results {
  readonly wasInterrupted: boolean;
  readonly testResults: readonly {
    readonly displayName?: { readonly name: string };
    readonly testResults: readonly { readonly ancestorTitles: readonly string[]; readonly title: string }[];
  }[];
}

/** A jest reporter that fails a whole run of a suite when the page names a test of it that does not exist. */
export default class UpstreamTestsReporter {
  readonly #globalConfig: GlobalConfig;
  #error: Error | undefined;

  constructor(globalConfig: GlobalConfig) {
    this.#globalConfig = globalConfig;
  }

  onRunComplete(_contexts: unknown, { wasInterrupted, testResults }: Results): void {
    const { testPathPatterns, testNamePattern, onlyChanged, rootDir } = this.#globalConfig;
    if (wasInterrupted || onlyChanged || testNamePattern || testPathPatterns.patterns.length > 0) return;
    const suites = new Set(testResults.map(({ displayName }) => displayName?.name ?? ''));
    const known = new Set(
      testResults.flatMap((file) => file.testResults.map((test) => [...test.ancestorTitles, test.title].join(' › '))),
    );
    const faults = missingTitles(readFileSync(path.join(rootDir, PAGE), 'utf8'), suites, known);
    if (faults.length === 0) return;
    // Jest ends with 1 for a reporter's error, and does not print it.
    console.error(faults.join('\n'));
    this.#error = new Error(`${PAGE} names tests that do not exist`);
  }

  getLastError(): Error | undefined {
    return this.#error;
  }
}
