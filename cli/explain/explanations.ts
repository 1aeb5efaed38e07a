import type { RecordedFinding } from '../../lib/table/run-records.ts';
import { nearestName } from '../spec/names.ts';
import { ERROR_CODES, OTHER_CODES } from './explain-error-codes.ts';
import { FINDINGS } from './explain-findings.ts';
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

/** The explanations by name without case, spaces and hyphens. Of equal names, the map keeps the one that is first in `all`. */
const inAnyCase: ReadonlyMap<string, Explanation> = new Map(
  [...all].toReversed().map(([word, one]) => [withoutCase(word), one]),
);

/** Returns the explanation of a whole message, or of a word in any case, with or without spaces and hyphens. */
export function explain(word: string): Explanation | undefined {
  return all.get(word.trim()) ?? inAnyCase.get(withoutCase(word)) ?? all.get(wordInMessage(word) ?? '');
}

export function nearestWord(word: string): string | undefined {
  return nearestName(word.trim(), [...all.keys()]);
}

/** Words of explanations, each with parts of a message. The first entry whose parts all occur in a message explains it. */
const MESSAGES: readonly (readonly [word: string, ...parts: readonly string[]])[] = [
  ['notCorrected', 'is not corrected ('],
  ['deadServerPublished', 'is still published although it is not live'],
  ['leakedRecord', 'IPAddress', 'appears to have been modified, not referencing a Service'],
  ['leakedRecord', 'IPAddress', 'appears to have leaked: cleaning up'],
  ['leakedRecord', 'IPAddress', 'has a wrong reference', '; cleaning up'],
  ['notRecorded', 'has a wrong reference; repairing'],
  // The message of the IPAddress repair has a space after the family. The message of the bitmap repair has no space.
  ['notRecorded', '[IPv', ']: ', 'is not allocated; repairing'],
  ['repair', 'is not allocated; repairing'],
  ['duplicate', 'was assigned to multiple services'],
  ['duplicate', 'was assigned to other services'],
  ['invalid', 'is not a valid IP; please recreate'],
  ['invalid', 'is of ip family that is no longer configured'],
  ['outOfRange', 'is not within ', '; please recreate'],
  ['full', 'is full; you must widen'],
  ['unknown', 'due to an unknown error'],
  ['leak', 'appears to have leaked: cleaning up'],
  ['mayHaveLeaked', 'may have leaked'],
  ['nothingFree', 'nothing is free in'],
  ['nothingFree', 'range is full'],
  ['heldByAnother', 'is held by', 'does not have its label'],
  ['AlreadyAllocated', 'is already allocated'],
  ['NotInRange', 'is not in the valid range'],
];

/** Matches words such as `Forbidden` and `twoOwners`, but no short word and no word in lower case. */
const A_CODE = /^(?=.*[A-Z]).{6,}$/;

/**
 * Returns the word whose explanation fits a pasted message: the text before the first colon if it has an explanation, else the
 * word of the matching entry in `MESSAGES`, else the first error code or finding in the message.
 */
function wordInMessage(message: string): string | undefined {
  const line = message.replace(/\s+/g, ' ').trim();
  const [ofText] = MESSAGES.find(([, ...parts]) => parts.every((part) => line.includes(part))) ?? [];
  const beginning = line.slice(0, Math.max(0, line.indexOf(':')));
  return all.has(beginning)
    ? beginning
    : (ofText ?? line.split(/[^A-Za-z]+/).find((one) => A_CODE.test(one) && all.has(one)));
}

/** Matches names that are safe in a shell: users paste hints into a shell. For any other name, a hint keeps the placeholder. */
const SAFE_NAME = /^[A-Za-z0-9:][\w.:-]*$/;

/** Returns what to do about a state or a finding, in one line: `kbctl doctor` if this version has no hint for the word. */
export function hintFor(
  word: string,
  cluster: { readonly name: string },
  { item, service }: Pick<RecordedFinding, 'item' | 'service'> = {},
): string {
  const [namespace, name] = service?.split('/') ?? [];
  const isPort = item !== undefined && /^\d+$/.test(item);
  const facts: Readonly<Record<string, string>> = {
    cluster: cluster.name,
    ...(item !== undefined && { item, kind: isPort ? 'port' : 'ip', field: isPort ? 'nodePort' : 'clusterIP' }),
    ...(namespace !== undefined && name !== undefined && { namespace, name }),
  };
  const hint = explain(word)?.hint ?? 'kbctl doctor <cluster>';
  return hint.replace(/<([a-z]+)>/g, (placeholder, fact: string) => {
    const value = Object.hasOwn(facts, fact) ? facts[fact] : undefined;
    return value !== undefined && SAFE_NAME.test(value) ? value : placeholder;
  });
}

function withoutCase(word: string): string {
  return word.toLowerCase().replace(/[\s_-]/g, '');
}
