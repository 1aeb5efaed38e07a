import type { RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { type Hold, type HoldTerms, isOver } from '../../lib/range/hold.ts';
import { formatAge } from '../status/age.ts';

const PREFIX = 'ranges/';

export function nameOfKey(key: RangeKey): string {
  return key.slice(PREFIX.length);
}

export function holdEnd(hold: HoldTerms, nowMs: number): string {
  if (hold.untilMs === undefined) return 'never';
  return isOver(hold, nowMs) ? `${formatAge(nowMs - hold.untilMs)} ago` : `in ${timeLeft(hold.untilMs - nowMs)}`;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** Rounds to the nearest unit, so that a new hold of an hour is not shown as 59 minutes. */
export function timeLeft(ms: number): string {
  const unitMs = ms < 10 * MINUTE_MS ? SECOND_MS : MINUTE_MS;
  return formatAge(Math.round(ms / unitMs) * unitMs);
}

export const TAKEN_UP_BY: Readonly<Record<Hold['takenUpBy'], string>> = {
  any: 'any Service',
  owner: 'Services of the owner',
};
