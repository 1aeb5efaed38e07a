import { type Hold, type HoldTerms, isOver } from '../../lib/cluster/hold.ts';
import { formatAge } from '../../lib/status/age.ts';

/** When it ends, as a column tells it. */
export function holdEnd(hold: HoldTerms, nowMs: number): string {
  if (hold.untilMs === undefined) return 'never';
  return isOver(hold, nowMs) ? `${formatAge(nowMs - hold.untilMs)} ago` : `in ${timeLeft(hold.untilMs - nowMs)}`;
}

/** To the nearest second, so that what was just asked for an hour is told as one. */
export function timeLeft(ms: number): string {
  return formatAge(Math.round(ms / 1000) * 1000);
}

export const TAKEN_UP_BY: Readonly<Record<Hold['takenUpBy'], string>> = {
  any: 'any Service',
  owner: 'Services of the owner',
};
