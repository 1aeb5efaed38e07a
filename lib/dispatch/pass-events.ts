import type { Finding } from '../cluster/finding.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { planEvents } from '../kubernetes/events.ts';
import type { EventsReport } from '../kubernetes/write-events.ts';
import { writeEvents } from '../kubernetes/write-events.ts';
import { unlessAborted } from './deadline.ts';
import type { Environment } from './environment.ts';
import type { PassInput } from './pass-input.ts';

/** Writes the events of what a pass found, as far as its time allows. Never throws: an event is not worth a pass. */
export async function tellEvents(
  environment: Environment,
  { loop, cluster, previous, signal }: PassInput,
  kubernetes: ClusterPort,
  findings: readonly Finding[],
): Promise<EventsReport> {
  const plan = planEvents({
    drafts: findings.flatMap(({ event }) => event ?? []),
    loop: loop.id,
    instance: environment.reportingInstance,
    previous: previous?.events ?? {},
    nowMs: environment.nowMs(),
    cap: cluster.spec.maxEventsPerPass,
  });
  // A pass that has used up its time, and has none to write, has missed none.
  if (plan.writes.length === 0) return writeEvents(kubernetes, plan);
  try {
    return await unlessAborted(signal, () => writeEvents(kubernetes, plan));
  } catch (error) {
    const errors = [error instanceof Error ? error : new Error('Events were not written', { cause: error })];
    // Some may have been: the next pass finds them there and goes on with their series.
    return { written: 0, dropped: plan.dropped + plan.writes.length, errors, sightings: previous?.events ?? {} };
  }
}
