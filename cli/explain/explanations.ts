import type { RecordedFinding } from '../../lib/table/run-records.ts';
import { nearestName } from '../spec/names.ts';
import { ERROR_CODES, OTHER_CODES } from './explain-error-codes.ts';
import { FINDINGS } from './explain-findings.ts';
import { wordInMessage } from './explain-messages.ts';
import { STATE_NAMES, STATES } from './explain-states.ts';
import type { Explained, Explanation } from './explanation.ts';

const explanations = (kind: Explanation['kind'], entries: Explained<string>): Explanation[] =>
  Object.entries(entries).map(([word, entry]) => ({ causes: [], reasons: [], ...entry, word, kind }));

const findings = explanations('finding', FINDINGS);

export const EXPLANATIONS: readonly Explanation[] = [
  ...findings,
  ...explanations('state', STATES),
  ...explanations('error code', ERROR_CODES),
];

const byWord = new Map(EXPLANATIONS.map((one) => [one.word, one]));

/** The explanations by word, by the reason of an event, and by other names of states and codes. */
const all: ReadonlyMap<string, Explanation> = new Map([
  ...byWord,
  ...findings.toReversed().flatMap((finding) => finding.reasons.map((reason) => [reason, finding] as const)),
  ...Object.entries({ ...STATE_NAMES, ...OTHER_CODES }).flatMap(([name, word]) => {
    const meant = byWord.get(word);
    return meant ? [[name, meant] as const] : [];
  }),
]);

/** The same by names without case, spaces and hyphens. Of names that are then equal, the first in `all` counts. */
const inAnyCase: ReadonlyMap<string, Explanation> = new Map(
  [...all].toReversed().map(([word, one]) => [withoutCase(word), one]),
);

/** Returns the explanation of a whole message, or of a word in any case, with or without spaces and hyphens. */
export function explain(word: string): Explanation | undefined {
  return all.get(word.trim()) ?? inAnyCase.get(withoutCase(word)) ?? all.get(wordInMessage(word, all) ?? '');
}

export function nearestWord(word: string): string | undefined {
  return nearestName(word.trim(), [...all.keys()]);
}

/** The type is any text, because a later version may have recorded the finding. */
type FindingFacts = Pick<RecordedFinding, 'item' | 'service'> & { readonly type: string };

export function findingHint({ type, item, service }: FindingFacts, cluster: { readonly name: string }): string {
  const [namespace, name] = service?.split('/') ?? [];
  const isPort = item !== undefined && /^\d+$/.test(item);
  return hintFor(type, {
    cluster: cluster.name,
    ...(item !== undefined && { item, kind: isPort ? 'port' : 'ip', field: isPort ? 'nodePort' : 'clusterIP' }),
    ...(namespace !== undefined && name !== undefined && { namespace, name }),
  });
}

export function stateHint(word: string, cluster: { readonly name: string }): string {
  return hintFor(word, { cluster: cluster.name });
}

/** Matches names that are safe in a shell, because users paste hints into a shell. The placeholder of any other name stays. */
const SAFE_NAME = /^[A-Za-z0-9:][\w.:-]*$/;

function hintFor(word: string, facts: Readonly<Record<string, string>>): string {
  const hint = explain(word)?.hint ?? 'kbctl doctor <cluster>';
  return hint.replace(/<([a-z]+)>/g, (placeholder, fact: string) => {
    const value = Object.hasOwn(facts, fact) ? facts[fact] : undefined;
    return value !== undefined && SAFE_NAME.test(value) ? value : placeholder;
  });
}

function withoutCase(word: string): string {
  return word.toLowerCase().replace(/[\s_-]/g, '');
}
