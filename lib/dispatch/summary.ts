import type { Pause } from '../table/clusters.ts';
import { someOf } from './log-pass.ts';
import type { Visit } from './visit-cluster.ts';

/** What became of the clusters that one invocation was for. */
export interface Summary {
  /** Passes that ran, or should have. */
  readonly passes: number;
  /** Those of them that failed. */
  readonly failed: number;
  /** Clusters that were not due, paused, or no longer registered. */
  readonly skipped: number;
}

export interface NamedVisit {
  readonly name: string;
  readonly visit: Visit;
}

type Sentences = readonly string[] | undefined;

export function summaryOf(visits: readonly NamedVisit[]): Summary {
  const count = (...outcomes: Visit['outcome'][]) =>
    visits.filter(({ visit }) => outcomes.includes(visit.outcome)).length;
  return {
    passes: count('succeeded', 'failed', 'unreached'),
    failed: count('failed', 'unreached'),
    skipped: count('notDue', 'paused', 'unregistered'),
  };
}

/** Which clusters had no pass although one was due, for the log line. */
export function withoutPass(
  visits: readonly NamedVisit[],
): Readonly<Record<'paused' | 'unreached' | 'unregistered', Sentences>> {
  const paused = visits.flatMap(({ name, visit }) => (visit.outcome === 'paused' ? [sentence(name, visit.pause)] : []));
  const named = (outcome: Visit['outcome']) =>
    someOf(visits.flatMap(({ name, visit }) => (visit.outcome === outcome ? [name] : [])));
  return { paused: someOf(paused), unreached: named('unreached'), unregistered: named('unregistered') };
}

function sentence(name: string, { untilMs, by, reason }: Pause): string {
  return `${name} until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}
