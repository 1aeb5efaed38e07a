import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from '@jest/globals';

/** A scenario, and the results of upstream's code in this scenario. */
export interface GoldenCase<Scenario, Expected> {
  readonly scenario: Scenario & { readonly name: string; readonly kind: string };
  readonly expected: Expected;
}

const REPAIRS = ['repair-cluster-ips', 'repair-node-ports', 'repair-ip-addresses'] as const;
const KINDS = ['ip-range', 'port-range', ...REPAIRS, 'reconcile-endpoints'] as const;
type Kind = (typeof KINDS)[number];

/**
 * Defines a test for each case of one kind in the `*.jsonl` files of `GOLDEN_DIR`, by default `test/golden`. The default kind of
 * a case is the name of its file without `.jsonl`. Throws an error if a file has no case, if a case is of a kind that no test
 * reads, or if `test/golden` has no case of this kind.
 */
export function goldenTests<Scenario, Expected>(
  fileName: `${Kind}.jsonl`,
  title: string,
  check: (golden: GoldenCase<Scenario, Expected>) => void | Promise<void>,
): void {
  const { GOLDEN_DIR } = process.env;
  const folder = GOLDEN_DIR ?? import.meta.dirname;
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const kind = basename(fileName, '.jsonl');
  const all = files.flatMap((name) => casesOf<Scenario, Expected>(join(folder, name)));
  const cases = all.filter(({ scenario }) => scenario.kind === kind);
  if (cases.length > 0) {
    test.each(cases)(title, check);
  } else if (GOLDEN_DIR !== undefined && all.length > 0) {
    test(`GOLDEN_DIR contains cases, but none of the kind ${kind}`, () => expect(all).not.toEqual([]));
  } else {
    throw new Error(`No golden case of kind ${kind} in ${folder}: expected ${fileName} there`);
  }
}

function casesOf<Scenario, Expected>(path: string): GoldenCase<Scenario, Expected>[] {
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
  if (lines.length === 0) throw new Error(`${path} holds no golden case`);
  const defaultKind = basename(path, '.jsonl');
  return lines.map((line, index) => {
    const { scenario, expected }: GoldenCase<Scenario, Expected> = JSON.parse(line);
    const kind = scenario.kind ?? defaultKind;
    if (!KINDS.some((known) => known === kind)) {
      throw new Error(`${path}, line ${index + 1}: no test reads golden cases of kind ${kind}`);
    }
    return { scenario: { ...scenario, kind, name: scenario.name ?? `line ${index + 1}` }, expected };
  });
}
