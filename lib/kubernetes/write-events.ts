import { eachOf } from '../cluster/async.ts';
import type { EventSighting } from '../cluster/finding.ts';
import { ClusterError, type ClusterPort } from './cluster-port.ts';
import type { EventPlan, EventSeries, EventWrite } from './events.ts';

export interface EventsReport {
  readonly written: number;
  /** The number of events over the cap or in a namespace that is being deleted. */
  readonly dropped: number;
  /** One error per event that could not be written. These errors never fail the pass. */
  readonly errors: readonly unknown[];
  /** The sightings for the run record: an unwritten event is due again in the next pass. */
  readonly sightings: Readonly<Record<string, EventSighting>>;
}

/** Errors after which the other events would fail too. */
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
  const unwritten = new Set(plan.writes);
  const errors: unknown[] = [];
  let dropped = plan.dropped;
  let written = 0;
  let isHopeless = false;
  const attempt = async (write: EventWrite) => {
    if (isHopeless) return;
    try {
      const outcome = await writeEvent(port, write);
      if (outcome === 'dropped') dropped += 1;
      if (outcome === 'written') written += 1;
      unwritten.delete(write);
    } catch (error) {
      errors.push(error);
      isHopeless ||= error instanceof ClusterError && HOPELESS.has(error.code);
    }
  };
  await eachOf(plan.writes, AT_A_TIME, attempt);
  return { written, dropped, errors, sightings: sightingsWithout(unwritten, plan.sightings) };
}

/** `dropped`: the event's namespace is being deleted. `withheld`: the pass only reports its writes. */
type EventOutcome = 'written' | 'dropped' | 'withheld';

async function writeEvent(port: ClusterPort, write: EventWrite): Promise<EventOutcome> {
  if (write.object.series !== undefined) {
    const continued = await continueSeries(port, write);
    if (continued !== 'dropped') return continued;
  }
  const result = await port.create(write.object);
  switch (result.outcome) {
    case 'created':
      return 'written';
    case 'withheld':
      return 'withheld';
    case 'namespaceUnavailable':
      return 'dropped';
    case 'alreadyExists':
      // An earlier pass wrote this event, or this pass did and the reply was lost. If the event was deleted meanwhile,
      // the next sighting creates it again.
      return continueSeries(port, write);
    case 'invalid':
      throw new ClusterError(
        'Rejected',
        `The API server refused the event ${write.object.metadata.name}: ${result.message}`,
      );
  }
}

/** Updates only the series: note, instance and time of an event cannot change. */
async function continueSeries(port: ClusterPort, { object }: EventWrite): Promise<EventOutcome> {
  const series: EventSeries = object.series ?? { count: 2, lastObservedTime: object.eventTime };
  const { name, namespace } = object.metadata;
  const ref = { kind: 'Event', name, ...(namespace !== undefined && { namespace }) } as const;
  const result = await port.mergePatch(ref, { series: { ...series } });
  if (result.outcome === 'invalid') {
    throw new ClusterError('Rejected', `The API server refused the series of event ${name}: ${result.message}`);
  }
  if (result.outcome === 'updated') return 'written';
  return result.outcome === 'withheld' ? 'withheld' : 'dropped';
}

function sightingsWithout(unwritten: ReadonlySet<EventWrite>, planned: EventPlan['sightings']): EventPlan['sightings'] {
  const sightings = { ...planned };
  for (const { object, previous } of unwritten) {
    const { name } = object.metadata;
    const sighting = sightings[name];
    delete sightings[name];
    if (previous !== undefined && sighting !== undefined) {
      sightings[name] = { ...previous, lastSeenAtMs: sighting.lastSeenAtMs };
    }
  }
  return sightings;
}
