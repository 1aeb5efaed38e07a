import type { Given } from '../cluster/given.ts';
import type { ItemFields } from './item-fields.ts';
import type { TableValue } from './key-value-table.ts';

/**
 * The stored form, short because each write of the range carries it. By namespace, one text with a line for each Service:
 * its name, the count of reviews, the bits of `first` and those of `later`.
 */
export function givenValue(given: readonly Given[]): { readonly [namespace: string]: TableValue } {
  const byNamespace = [...Map.groupBy(given, ({ namespace }) => namespace)];
  return Object.fromEntries(byNamespace.map(([namespace, each]) => [namespace, each.map(lineOf).join('\n')]));
}

/** What does not parse is forgotten, which is safe. */
export function givenOf(fields: ItemFields): readonly Given[] {
  const byNamespace = fields.each('given', (inner, namespace) => inner.text(namespace));
  return Object.entries(byNamespace).flatMap(([namespace, text]) =>
    text.split('\n').flatMap((line) => givenIn(namespace, line)),
  );
}

function lineOf({ name, reviews, first, later }: Given): string {
  return [name, reviews, first.join(), later.join()].join(' ');
}

function givenIn(namespace: string, line: string): readonly Given[] {
  const [, name, reviews, first = '', later = ''] = /^(\S+) (\d+) ([\d,]*) ([\d,]*)$/.exec(line) ?? [];
  if (name === undefined) return [];
  return [{ namespace, name, reviews: Number(reviews), first: bitsIn(first), later: bitsIn(later) }];
}

function bitsIn(text: string): readonly number[] {
  return text === '' ? [] : text.split(',').map(Number);
}
