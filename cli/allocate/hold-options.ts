import { InvalidArgumentError } from 'commander';
import { AllocatorError } from '../../lib/allocator/errors.ts';
import { badHold } from '../../lib/cluster/hold.ts';
import { parseDuration } from '../durations.ts';
import { usageError } from '../errors.ts';
import { userName } from '../user-name.ts';

/** For good, or for milliseconds. */
export type HoldFor = 'forever' | number;

const LONGEST_OWNER = 63;

/** `1h`, `forever`. @throws InvalidArgumentError of commander, whose message is shown beside the option. */
export function parseHoldFor(text: string): HoldFor {
  if (text === 'forever') return 'forever';
  try {
    return parseDuration(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new InvalidArgumentError(`${error.message} For good is "forever".`);
  }
}

/** @throws CliError for an owner that no hold can have. */
export function checkedOwner(owner: string): string {
  const bad = badHold({ owner, takenUpBy: 'any' });
  if (bad instanceof AllocatorError) throw usageError(`--owner: ${bad.message}.`);
  return owner;
}

/** The name of whoever runs the command, as far as an owner may be called so. */
export function ownerFrom(name: string = userName()): string {
  const fit = name.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, LONGEST_OWNER);
  return /[A-Za-z0-9](?:.*[A-Za-z0-9])?/.exec(fit)?.[0] ?? 'kbctl';
}
