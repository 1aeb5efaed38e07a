import type { PatchOperation } from './patch.ts';
import type { Service } from './service.ts';

const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const LONGEST_NAME = 63;

/**
 * The name of a Service. `generateName` is completed here, as the registry would
 * (`apiserver/pkg/storage/names/generate.go`): a Service without a name cannot be told from another one that asks for the
 * same value.
 */
export function nameOf({ metadata: { name, generateName } }: Service, newSuffix: () => string): string {
  if (name !== '' || generateName === '') return name;
  return generateName.slice(0, LONGEST_NAME - SUFFIX_LENGTH) + newSuffix();
}

export function suffix(pick: (below: number) => number): string {
  const letters = Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_LETTERS[pick(SUFFIX_LETTERS.length)]);
  return letters.join('');
}

export function namePatch({ metadata }: Service, name: string): readonly PatchOperation[] {
  return metadata.name === name ? [] : [{ op: 'add', path: '/metadata/name', value: name }];
}
