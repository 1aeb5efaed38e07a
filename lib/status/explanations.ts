import type { FindingType } from '../cluster/finding.ts';
import { nearestName } from '../cluster/values.ts';
import { ENDPOINT_FINDINGS } from './explain-endpoint-findings.ts';
import { ERROR_CODES } from './explain-error-codes.ts';
import { RANGE_FINDINGS } from './explain-range-findings.ts';
import { REFUSALS } from './explain-refusals.ts';
import { STATE_NAMES, STATES } from './explain-states.ts';
import { type Entry, type Explanation, filledIn } from './explanation.ts';

const FINDINGS = { ...RANGE_FINDINGS, ...ENDPOINT_FINDINGS } satisfies Readonly<Record<FindingType, Entry>>;

const findings = Object.entries<Entry>(FINDINGS).map(([word, entry]) => explanation('finding', word, entry));
const states = Object.entries<Entry>(STATES).map(([word, entry]) => explanation('state', word, entry));
const codes = Object.entries<Entry>({ ...ERROR_CODES, ...REFUSALS }).map(([word, entry]) =>
  explanation('error code', word, entry),
);

/** All of them: findings, then states, then error codes. */
export const EXPLANATIONS: readonly Explanation[] = [...findings, ...states, ...codes];

/** Findings that do not end unless a person does something. */
export const FINDINGS_FOR_PEOPLE: ReadonlySet<string> = new Set(
  findings.filter(({ severity }) => severity === 'action required').map(({ word }) => word),
);

/** Names of faults that are no error of ours, as a run record has them for their code. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...STATE_NAMES,
  Error: 'Unexpected',
  RangeError: 'Unexpected',
  TypeError: 'Unexpected',
};

const byWord = new Map(EXPLANATIONS.map((one) => [one.word, one]));

/** Every word that has an explanation. Where two differ in case alone, the first is meant by any other case. */
const known: ReadonlyMap<string, Explanation> = new Map([
  ...byWord,
  ...findings.flatMap((finding) => finding.reasons.map((reason) => [reason, finding] as const)),
  ...Object.entries(OTHER_NAMES).flatMap(([name, word]) => {
    const meant = byWord.get(word);
    return meant === undefined ? [] : [[name, meant] as const];
  }),
]);

const inAnyCase: ReadonlyMap<string, Explanation> = new Map(
  [...known].toReversed().map(([word, one]) => [withoutCase(word), one]),
);

/**
 * What is known of a word: a type of finding, a reason of the original's events, a state, or the code of an error. In
 * any case, and with or without spaces and hyphens. For what is none of them, the word that was probably meant.
 */
export function explain(word: string): Explanation | { readonly nearest?: string } {
  const found = known.get(word.trim()) ?? inAnyCase.get(withoutCase(word));
  if (found !== undefined) return found;
  const nearest = nearestName(word.trim(), [...known.keys()]);
  return nearest === undefined ? {} : { nearest };
}

/** What a status says of one finding. */
export interface FindingToMend {
  /** A later version's type is none that is known here. */
  readonly type: string;
  /** The address or port. */
  readonly item?: string;
  /** `namespace/name`. */
  readonly service?: string;
}

/** How to mend a finding, in one line, with its own Service and address. */
export function mendingHint({ type, item, service }: FindingToMend, cluster: { readonly name: string }): string {
  const [namespace, name] = service?.split('/') ?? [];
  return hintFor(type, {
    cluster: cluster.name,
    ...(item !== undefined && { item }),
    ...(namespace !== undefined && name !== undefined && { namespace, name }),
  });
}

/** What to do about a state or an error code, in one line. */
export function stateHint(word: string, cluster: { readonly name: string }): string {
  return hintFor(word, { cluster: cluster.name });
}

function hintFor(word: string, facts: Parameters<typeof filledIn>[1]): string {
  const explained = explain(word);
  return filledIn('hint' in explained ? explained.hint : 'kbctl doctor <cluster>', facts);
}

function explanation(kind: Explanation['kind'], word: string, entry: Entry): Explanation {
  return { reasons: [], ...entry, word, kind };
}

function withoutCase(word: string): string {
  return word.toLowerCase().replace(/[\s_-]/g, '');
}
