import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** What the original did with one scenario, run for real. */
export interface GoldenCase<Scenario, Expected> {
  readonly scenario: Scenario & { readonly name: string; readonly kind: string };
  readonly expected: Expected;
}

const KINDS = ['ip-range', 'port-range', 'repair-cluster-ips', 'repair-node-ports', 'reconcile-endpoints'] as const;
type Kind = (typeof KINDS)[number];

/**
 * The cases of one kind (`ip-range.jsonl` holds the kind `ip-range`) from every `*.jsonl` of `GOLDEN_DIR`, by default
 * `test/golden`. Throws when a file holds no case, when a case is of a kind that no test reads, and when no case of
 * the wanted kind is left: a suite of nothing would pass.
 */
export function goldenCases<Scenario, Expected>(fileName: `${Kind}.jsonl`): GoldenCase<Scenario, Expected>[] {
  const folder = process.env['GOLDEN_DIR'] ?? join(import.meta.dirname, '..', 'golden');
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  const kind = basename(fileName, '.jsonl');
  const cases = files
    .flatMap((name) => casesOf<Scenario, Expected>(join(folder, name)))
    .filter(({ scenario }) => scenario.kind === kind);
  if (cases.length === 0) throw new Error(`No golden case of kind ${kind} in ${folder}: expected ${fileName} there`);
  return cases;
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
