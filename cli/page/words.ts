import { formatAge } from '../../lib/status/age.ts';
import { type ApiServerStatus, type Health, LEASE_WORDS, type LoopStatus } from '../../lib/status/cluster-status.ts';
import { type Html, html } from './html.ts';

/** The worst first. The keys are the classes of the style sheet, each with its own shape. */
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
  held: 'good',
  ranOut: 'bad',
  withdrawn: 'paused',
  neverSeen: 'unknown',
};

/** A shape, its colour and a word. */
export function badge(health: Health, word: string = HEALTH_WORDS[health]): Html {
  return html`<span class="${health}">${word}</span>`;
}

export function leaseBadge(state: ApiServerStatus['state']): Html {
  return badge(LEASE_HEALTH[state], LEASE_WORDS[state]);
}

/** `8s ago`, `in 12s`. What was written while the page was being read is no second ahead. */
export function relative(atMs: number, nowMs: number): string {
  return atMs >= nowMs + 1_000 ? `in ${formatAge(atMs - nowMs)}` : `${formatAge(nowMs - atMs)} ago`;
}

/** How long ago or until, with the time for machines. */
export function when(atMs: number, nowMs: number): Html {
  return timeOf(atMs, relative(atMs, nowMs));
}

/** `2026-11-21T06:15:39Z`, or another text for the time. */
export function timeOf(atMs: number, text = isoTime(atMs)): Html {
  return html`<time datetime="${isoTime(atMs)}">${text}</time>`;
}

/** `1 finding`, `3 findings`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** `65,534`. More addresses than a number says exactly are only known to be more. */
export function grouped(count: number): string {
  return count >= Number.MAX_SAFE_INTEGER ? '2^53 or more' : count.toLocaleString('en-US');
}

/** `0 %`, `<1 %`, `43 %`: only nothing in use is 0, and only full is 100. */
export function percentage(used: number, capacity: number): string {
  const percent = capacity === 0 ? 0 : (100 * used) / capacity;
  if (percent > 0 && percent < 1) return '<1 %';
  return `${percent < 100 ? Math.min(99, Math.round(percent)) : 100} %`;
}

/** Times from a table may be any number: those that no date can hold are shown as the last that one can. */
function isoTime(atMs: number): string {
  const last = 253_402_300_799_000;
  return `${new Date(Math.min(Math.max(Number.isFinite(atMs) ? atMs : 0, 0), last)).toISOString().slice(0, 19)}Z`;
}
