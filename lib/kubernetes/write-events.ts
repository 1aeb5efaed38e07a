import { isNativeError } from 'node:util/types';
import type { EventSighting } from '../cluster/finding.ts';
import { ClusterError, type ClusterPort } from './cluster-port.ts';
import type { EventPlan, EventSeries, EventWrite } from './events.ts';

export interface EventsReport {
  readonly written: number;
  /** Over the cap, or in a namespace that is going away. */
  readonly dropped: number;
  /** One for each event that could not be written. They never fail the pass. */
  readonly errors: readonly Error[];
  /** For the run record: what was not written is due again in the next pass. */
  readonly sightings: Readonly<Record<string, EventSighting>>;
}

/** After these the rest would fare no better, and the pass has other things to do with its time. */
const HOPELESS: ReadonlySet<unknown> = new Set([
  'Unauthorized',
  'Throttled',
  'Unavailable',
  'TlsFailure',
  'DeadlineExceeded',
]);

const AT_A_TIME = 4;

/** Writes the planned events. Never throws. */
export async function writeEvents(port: ClusterPort, plan: EventPlan): Promise<EventsReport> {
  const waiting = plan.writes.values();
  const unwritten = new Set(plan.writes);
  const errors: Error[] = [];
  let dropped = plan.dropped;
  const attempt = async (write: EventWrite) => {
    try {
      const made = await writeEvent(port, write);
      dropped += made ? 0 : 1;
      unwritten.delete(write);
    } catch (error) {
      errors.push(isNativeError(error) ? error : new Error(String(error)));
    }
  };
  const worker = async () => {
    for (const write of waiting) {
      if (!errors.some((error) => error instanceof ClusterError && HOPELESS.has(error.code))) {
        await attempt(write);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, worker));
  const written = plan.writes.length - unwritten.size - (dropped - plan.dropped);
  return { written, dropped, errors, sightings: sightingsWithout(unwritten, plan.sightings) };
}

/** `false`: there is no place for it, its namespace is going away. */
async function writeEvent(port: ClusterPort, write: EventWrite): Promise<boolean> {
  if (write.count > 1 && (await continueSeries(port, write))) {
    return true;
  }
  const result = await port.create(write.object);
  if (result.outcome === 'alreadyExists') {
    // An earlier pass, or a lost reply of this one. Gone again by now: the next sighting makes it.
    return continueSeries(port, write);
  }
  if (result.outcome === 'invalid') {
    throw new ClusterError('Rejected', `The API server refused the event ${write.name}: ${result.message}`);
  }
  return result.outcome === 'created';
}

/** Note and instance of an event cannot be changed, and its time is that of the first sighting: only the series is. */
async function continueSeries(port: ClusterPort, { object, count }: EventWrite): Promise<boolean> {
  const series: EventSeries = object.series ?? { count: Math.max(2, count), lastObservedTime: object.eventTime };
  const { name, namespace } = object.metadata;
  const ref = { kind: 'Event', name, ...(namespace !== undefined && { namespace }) } as const;
  const result = await port.mergePatch(ref, { series: { ...series } });
  if (result.outcome === 'invalid') {
    throw new ClusterError('Rejected', `The API server refused the series of event ${name}: ${result.message}`);
  }
  return result.outcome === 'updated';
}

function sightingsWithout(unwritten: ReadonlySet<EventWrite>, planned: EventPlan['sightings']): EventPlan['sightings'] {
  const sightings = { ...planned };
  for (const { name, previous } of unwritten) {
    const sighting = sightings[name];
    delete sightings[name];
    if (previous !== undefined && sighting !== undefined) {
      sightings[name] = { ...previous, lastSeenAtMs: sighting.lastSeenAtMs };
    }
  }
  return sightings;
}
