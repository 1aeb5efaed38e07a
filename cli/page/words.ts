import { formatAge } from '../status/age.ts';
import { type ApiServerStatus, type Health, LEASE_WORDS, type LoopStatus } from '../status/cluster-status.ts';
import { amount } from '../status/status-lines.ts';
import { type Html, html } from './html.ts';

/** The health states, the worst first. The keys are classes of the style sheet, each with its own shape. */
export const HEALTH_WORDS = {
  bad: 'critical',
  warning: 'warning',
  unknown: 'not known yet',
  paused: 'paused',
  good: 'good',
} as const satisfies Record<Health, string>;

export const HEALTHS = Object.keys(HEALTH_WORDS) as Health[];

export const LOOP_STATES: Record<LoopStatus['state'], readonly [Health, string]> = {
  good: ['good', 'good'],
  failing: ['bad', 'failing'],
  late: ['warning', 'late'],
  neverRan: ['unknown', 'never ran'],
  paused: ['paused', 'paused'],
  unknown: ['unknown', 'cannot be read'],
};

const LEASE_HEALTH: Record<ApiServerStatus['state'], Health> = {
  active: 'good',
  expired: 'bad',
  withdrawn: 'paused',
  neverSeen: 'unknown',
};

/** Returns a shape, its colour and a word. */
export function badge(health: Health, word: string = HEALTH_WORDS[health]): Html {
  return html`<span class="${health}">${word}</span>`;
}

export function leaseBadge(state: ApiServerStatus['state']): Html {
  return badge(LEASE_HEALTH[state], LEASE_WORDS[state]);
}

/** Returns `8s ago` or `in 12s`. A time after the read is shown as now. */
export function relative(atMs: number, nowMs: number): string {
  return atMs >= nowMs + 1_000 ? `in ${formatAge(atMs - nowMs)}` : `${formatAge(nowMs - atMs)} ago`;
}

/** Returns an age or a remaining time, with the time for machines. */
export function when(atMs: number, nowMs: number): Html {
  return timeOf(atMs, relative(atMs, nowMs));
}

/** Returns `2026-11-21T06:15:39Z`, or another text for the time. */
export function timeOf(atMs: number, text = isoTime(atMs)): Html {
  return html`<time datetime="${isoTime(atMs)}">${text}</time>`;
}

/** Returns `1 finding`, `3 findings`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Returns `65,534`, or `2^53 or more`. */
export function grouped(count: number): string {
  return amount(count, (few) => few.toLocaleString('en-US'));
}

/** Returns `0 %`, `<1 %`, `43 %`: only unused is 0, and only full is 100. */
export function percentage(used: number, capacity: number): string {
  const percent = capacity === 0 ? 0 : (100 * used) / capacity;
  if (percent > 0 && percent < 1) return '<1 %';
  return `${percent < 100 ? Math.min(99, Math.round(percent)) : 100} %`;
}

/** Times from a table may be any number: those beyond the range of dates are shown as the last date. */
function isoTime(atMs: number): string {
  const last = 253_402_300_799_000;
  return `${new Date(Math.min(Math.max(Number.isFinite(atMs) ? atMs : 0, 0), last)).toISOString().slice(0, 19)}Z`;
}
