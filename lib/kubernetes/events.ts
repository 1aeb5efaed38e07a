import { hash } from 'node:crypto';
import type { EventsV1Event } from '@kubernetes/client-node';
import type { EventDraft, EventSighting } from '../cluster/finding.ts';
import type { WholeObject } from '../cluster/kubernetes-objects.ts';
import type { Loop } from '../spec/cluster-spec.ts';
import { eachOf } from '../util/async.ts';
import { ClusterError, type ClusterPort, isFaultOfObject, refOf } from './cluster-port.ts';

/** An event as the API stores it. The API requires a `series.count` of at least 2. */
type EventObject = WholeObject<EventsV1Event>;

type EventWrite = ReturnType<typeof eventWrite>;

export interface EventPlanInput {
  readonly drafts: readonly EventDraft[];
  readonly loop: Loop;
  /** The reporting instance, which is the same for every process of a stack. It is cut at 128 bytes, the limit of the API. */
  readonly instance: string;
  /** The entries in the run record of the loop's last pass, by event name. */
  readonly previous: Readonly<Record<string, EventSighting>>;
  readonly nowMs: number;
  readonly cap: number;
}

/** The interval of repeated events, as in client-go's `tools/events`. */
const REPEAT_MS = 30 * 60_000;
/** An API server deletes an event after an hour (`--event-ttl`), so a pass that reports the finding later creates a new event. */
const FORGET_AFTER_MS = 60 * 60_000;
const MOST_SIGHTINGS = 300;
const LONGEST_NOTE = 1_024;
const LONGEST_INSTANCE = 128;
const LONGEST_NAME = 253;

/**
 * Plans the events that a pass writes, one for each object, reason and note. The second pass with the same finding writes the
 * series of the event. After that, passes write the series every 30 minutes. Drops events beyond the cap of a pass, and new
 * events if the run record is full.
 */
export function planEvents(input: EventPlanInput) {
  const { previous, nowMs, cap } = input;
  const seen = new Map(input.drafts.map((draft) => [eventName(draft, input), draft]));
  const sightings = new Map<string, EventSighting>();
  let room = MOST_SIGHTINGS - [...seen.keys()].filter((name) => previous[name] !== undefined).length;
  const writes: EventWrite[] = [];
  let dropped = 0;
  for (const [name, draft] of seen) {
    const before = previous[name];
    const due = isDue(before, nowMs);
    const written = due && writes.length < cap && (before !== undefined || room > 0);
    if (written) writes.push(eventWrite(name, draft, before, input));
    else if (due) dropped += 1;
    if (written && before === undefined) room -= 1;
    if (written || before !== undefined) sightings.set(name, sighted(before, written, nowMs));
  }
  const kept = latestUnseen(previous, seen, nowMs).slice(0, Math.max(0, room));
  // The entries for the run record if every write succeeds, by event name.
  const ifWritten: EventPlanInput['previous'] = Object.fromEntries([...kept, ...sightings]);
  return { writes, sightings: ifWritten, dropped };
}

function sighted(before: EventSighting | undefined, written: boolean, nowMs: number): EventSighting {
  const lastWrittenAtMs = written ? nowMs : (before?.lastWrittenAtMs ?? nowMs);
  return { count: (before?.count ?? 0) + 1, lastSeenAtMs: nowMs, lastWrittenAtMs };
}

function isDue(previous: EventSighting | undefined, nowMs: number): boolean {
  return previous === undefined || previous.count === 1 || nowMs - previous.lastWrittenAtMs >= REPEAT_MS;
}

/** Returns the entries of the last hour whose findings this pass did not report. The latest entry comes first. */
function latestUnseen(previous: EventPlanInput['previous'], seen: ReadonlyMap<string, unknown>, nowMs: number) {
  return Object.entries(previous)
    .filter(([name, { lastSeenAtMs }]) => !seen.has(name) && nowMs - lastSeenAtMs <= FORGET_AFTER_MS)
    .sort(([, one], [, other]) => other.lastSeenAtMs - one.lastSeenAtMs);
}

/** Returns a DNS subdomain. Its hash includes the reporter of the event, because the reporter of a stored event cannot change. */
function eventName(draft: EventDraft, { loop, instance }: Pick<EventPlanInput, 'loop' | 'instance'>): string {
  const { namespace, name, uid } = draft.regarding;
  const identity = JSON.stringify([loop, instance, namespace, name, uid, draft.reason, draft.note]);
  const suffix = hash('sha256', identity).slice(0, 16);
  const fit = name.toLowerCase().replace(/[^a-z0-9.-]+/g, '-');
  const labels = fit.slice(0, LONGEST_NAME - suffix.length - 1).match(/[a-z0-9]+(?:-+[a-z0-9]+)*/g) ?? [];
  return [...labels, suffix].join('.');
}

function eventWrite(
  name: string,
  draft: EventDraft,
  previous: EventSighting | undefined,
  { loop, instance, nowMs }: EventPlanInput,
) {
  const count = (previous?.count ?? 0) + 1;
  const object: EventObject = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: draft.regarding.namespace || 'default' },
    eventTime: microTime(nowMs),
    reportingController: `kube-bootstrap-controller/${loop}`,
    reportingInstance: cutUtf8(instance, LONGEST_INSTANCE),
    type: draft.type ?? 'Warning',
    reason: draft.reason,
    action: draft.action,
    note: cutUtf8(draft.note, LONGEST_NOTE),
    regarding: nonEmpty(draft.regarding),
    ...(count > 1 && { series: { count, lastObservedTime: microTime(nowMs) } }),
  };
  // The entry for the run record if the write fails. Absent for a new event, so that the next pass creates it.
  const ifUnwritten = previous && { ...previous, lastSeenAtMs: nowMs };
  return { object, ifUnwritten };
}

function nonEmpty(regarding: EventDraft['regarding']): Record<string, string> {
  return Object.fromEntries(Object.entries(regarding).filter(([, value]) => value !== undefined && value !== ''));
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}

/** Returns at most `bytes` bytes of UTF-8, without half a character. */
function cutUtf8(text: string, bytes: number): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, bytes), { stream: true });
}

export interface EventsReport {
  readonly written: number;
  /** The number of events that `planEvents` or `writeEvent` dropped. Does not include failed writes. */
  readonly dropped: number;
  readonly errors: readonly unknown[];
  /** The entries for the run record. An event whose write failed keeps its old entry, so that the next pass writes it again. */
  readonly sightings: Readonly<Record<string, EventSighting>>;
}

const AT_A_TIME = 4;

/** Writes the planned events. Never throws. */
export async function writeEvents(port: ClusterPort, plan: ReturnType<typeof planEvents>): Promise<EventsReport> {
  const outcomes = new Map<EventWrite, EventOutcome>();
  const errors: unknown[] = [];
  await eachOf(plan.writes, AT_A_TIME, async (write) => {
    // After an error that no object caused, the writes of all other events would fail too.
    if (errors.some((error) => !isFaultOfObject(error))) return;
    try {
      outcomes.set(write, await writeEvent(port, write.object));
    } catch (error) {
      errors.push(error);
    }
  });
  const sightings = new Map(Object.entries(plan.sightings));
  for (const write of plan.writes.filter((one) => !outcomes.has(one))) {
    if (write.ifUnwritten === undefined) sightings.delete(write.object.metadata.name);
    else sightings.set(write.object.metadata.name, write.ifUnwritten);
  }
  const count = (outcome: EventOutcome) => [...outcomes.values()].filter((one) => one === outcome).length;
  const dropped = plan.dropped + count('dropped');
  return { written: count('written'), dropped, errors, sightings: Object.fromEntries(sightings) };
}

/** `dropped`: the namespace is absent or terminating, or the event was deleted. `withheld`: the pass only reports its writes. */
type EventOutcome = 'written' | 'dropped' | 'withheld';

async function writeEvent(port: ClusterPort, event: EventObject): Promise<EventOutcome> {
  const continued = event.series && (await continueSeries(port, event));
  if (continued !== undefined && continued !== 'dropped') return continued;
  const result = await port.create(event);
  if (result.outcome === 'invalid') throw refusedEvent(`event ${event.metadata.name}`, result.message);
  // An earlier pass wrote this event, or this pass did and the reply was lost. If the event was deleted meanwhile, the next
  // pass that reports the finding creates it again.
  if (result.outcome === 'alreadyExists') return continueSeries(port, event);
  if (result.outcome === 'created') return 'written';
  return result.outcome === 'withheld' ? 'withheld' : 'dropped';
}

/** Updates only the series: note, instance and time of an event cannot change. */
async function continueSeries(port: ClusterPort, event: EventObject): Promise<EventOutcome> {
  const series = event.series ?? { count: 2, lastObservedTime: event.eventTime };
  const result = await port.mergePatch(refOf(event), { series: { ...series } });
  if (result.outcome === 'invalid') throw refusedEvent(`series of event ${event.metadata.name}`, result.message);
  if (result.outcome === 'updated') return 'written';
  return result.outcome === 'withheld' ? 'withheld' : 'dropped';
}

function refusedEvent(what: string, message: string): ClusterError {
  return new ClusterError('Rejected', `The API server refused the ${what}: ${message}`);
}
