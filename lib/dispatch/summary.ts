import type { Pause } from '../table/clusters.ts';
import type { Visit } from './visit-cluster.ts';

/** What became of the clusters that one invocation was for. */
export interface Summary {
  /** Passes that ran, or should have. */
  readonly passes: number;
  /** Those of them that failed. */
  readonly failed: number;
  /** Clusters that were not due, or paused. */
  readonly skipped: number;
}

export interface NamedVisit {
  readonly name: string;
  readonly visit: Visit;
}

type Sentences = readonly string[] | undefined;

const MAX_NAMES = 20;

export function summaryOf(visits: readonly NamedVisit[]): Summary {
  const count = (...outcomes: Visit['outcome'][]) =>
    visits.filter(({ visit }) => outcomes.includes(visit.outcome)).length;
  return {
    passes: count('succeeded', 'failed', 'unreached'),
    failed: count('failed', 'unreached'),
    skipped: count('notDue', 'paused'),
  };
}

/** Which clusters had no pass although one was due, for the log line. */
export function withoutPass(visits: readonly NamedVisit[]): Readonly<Record<'paused' | 'unreached', Sentences>> {
  const paused = visits.flatMap(({ name, visit }) => (visit.outcome === 'paused' ? [sentence(name, visit.pause)] : []));
  const unreached = visits.flatMap(({ name, visit }) => (visit.outcome === 'unreached' ? [name] : []));
  return { paused: some(paused), unreached: some(unreached) };
}

function sentence(name: string, { untilMs, by, reason }: Pause): string {
  return `${name} until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}

function some(all: readonly string[]): Sentences {
  if (all.length === 0) return undefined;
  return all.length <= MAX_NAMES ? all : [...all.slice(0, MAX_NAMES), `and ${all.length - MAX_NAMES} more`];
}
