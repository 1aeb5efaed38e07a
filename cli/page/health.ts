import type { ApiServerStatus, Health, LoopStatus } from '../../lib/status/cluster-status.ts';
import { type Html, html } from './html.ts';

/** In the order of how soon somebody has to look. The keys are the classes of the style sheet, each with a shape of its own. */
export const HEALTH_WORDS = {
  bad: 'critical',
  warning: 'warning',
  unknown: 'not known yet',
  paused: 'paused',
  good: 'good',
} as const satisfies Record<Health, string>;

export const HEALTHS = Object.keys(HEALTH_WORDS) as Health[];

const LOOP_STATES: Record<LoopStatus['state'], readonly [Health, string]> = {
  good: ['good', 'good'],
  failing: ['bad', 'failing'],
  late: ['warning', 'late'],
  neverRan: ['unknown', 'never ran'],
  paused: ['paused', 'paused'],
  unknown: ['unknown', 'cannot be read'],
};

const LEASE_STATES: Record<ApiServerStatus['state'], readonly [Health, string]> = {
  held: ['good', 'held'],
  ranOut: ['bad', 'ran out'],
  withdrawn: ['paused', 'withdrawn'],
  neverSeen: ['unknown', 'never seen'],
};

/** A shape, its colour and a word. */
export function badge(health: Health, word: string = HEALTH_WORDS[health]): Html {
  return html`<span class="${health}">${word}</span>`;
}

export function loopBadge(state: LoopStatus['state']): Html {
  return badge(...LOOP_STATES[state]);
}

export function loopWord(state: LoopStatus['state']): string {
  return LOOP_STATES[state][1];
}

export function leaseBadge(state: ApiServerStatus['state']): Html {
  return badge(...LEASE_STATES[state]);
}
