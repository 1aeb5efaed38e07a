import { readInRepository } from '../support/repository.ts';

/** A row of the table of integration tests in `test/upstream-tests.md`. */
export interface IntegrationRow {
  readonly pack: string;
  readonly tests: readonly string[];
  /** The result with the loops of upstream, and with those of this project: `passes`, or `none: ` and the reason. */
  readonly upstream: string;
  readonly ours: string;
  /** A part of the names of the subtests that do not run with the loops of this project. */
  readonly without?: string;
}

const OURS = /^(?:passes(?: without `([^`]+)`: .+)?|none: .+)$/;

/** Returns the rows, and throws an error for a row that is not in the format of the page. */
export function integrationRows(): IntegrationRow[] {
  const section = readInRepository('test/upstream-tests.md').split('\n## Integration tests')[1] ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) => {
    const [pack = '', tests = '', upstream = '', ours = ''] = line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1);
    const match = OURS.exec(ours);
    if (match === null || !/^(passes|none: .+)$/.test(upstream)) throw new Error(`not a row of the table: ${line}`);
    return { pack, tests: tests.split(', '), upstream, ours, ...(match[1] && { without: match[1] }) };
  });
}
