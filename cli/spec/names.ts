import { distance } from 'fastest-levenshtein';
import { DNS_LABEL } from '../../lib/spec/spec-parts.ts';

/** The version of the documents that kbctl prints. */
export const API_VERSION = 'kbctl/v1';

/** Returns whether a text is a host name. A name whose last label is a number is refused: it may be a mistyped address. */
export function isHostName(text: string): boolean {
  const labels = text.toLowerCase().split('.');
  return text.length <= 253 && labels.every((label) => DNS_LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '');
}

/** Compares names in natural order: `edge-2` is before `edge-10`. */
export function compareNames(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

/** The minimum length of a prefix that identifies a name. */
const SHORTEST_BEGINNING = 3;

/**
 * Returns the only known name that begins with `name`, else the most similar one. At most a third of the letters, rounded up,
 * may differ.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [only, ...others] = known.filter((candidate) => candidate.toLowerCase().startsWith(name.toLowerCase()));
  if (only !== undefined && others.length === 0 && name.length >= SHORTEST_BEGINNING) return only;
  const [best] = known
    .map((candidate) => ({ candidate, differences: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, differences }) => differences <= Math.ceil(candidate.length / 3))
    .sort((one, other) => one.differences - other.differences);
  return best?.candidate;
}
