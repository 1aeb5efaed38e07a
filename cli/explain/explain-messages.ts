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
 * Returns the word of the explanation for a pasted message: the text before the message's first colon if this text is a word in
 * `words`, else the word of the matching entry in `MESSAGES`, else the first error code or finding in the message.
 */
export function wordInMessage(message: string, words: { has(word: string): boolean }): string | undefined {
  const line = message.replace(/\s+/g, ' ').trim();
  const [ofText] = MESSAGES.find(([, ...parts]) => parts.every((part) => line.includes(part))) ?? [];
  const beginning = line.slice(0, Math.max(0, line.indexOf(':')));
  return words.has(beginning)
    ? beginning
    : (ofText ?? line.split(/[^A-Za-z]+/).find((one) => A_CODE.test(one) && words.has(one)));
}
