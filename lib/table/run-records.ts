import { AllocatorError } from '../allocator/errors.ts';
import { type ClusterSpec, LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import type { EventSighting, FindingType } from '../cluster/finding.ts';
import { type RangeKey, repairLoopOf } from '../cluster/spec-ranges.ts';
import { TableError } from './errors.ts';
import { fieldsIn, fieldsOf, type ItemFields } from './item-values.ts';
import type { Item, KeyValueTable, NewItem, TableValue, WriteResult } from './key-value-table.ts';

/** `runs/<loop>`: the last pass of a loop, and what the loop must remember until its next one. */
export interface RunRecord {
  readonly passId: string;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly outcome: 'succeeded' | 'failed';
  readonly mode: 'observe' | 'enforce';
  /** No enforcing pass has succeeded since one that only observed. */
  readonly observed: boolean;
  readonly counts: Readonly<Record<string, number>>;
  /** For people, and capped. */
  readonly findings: readonly {
    readonly type: FindingType;
    readonly message: string;
    /** The address or port it is about. */
    readonly item?: string;
    /** The Service it is about: `namespace/name`. */
    readonly service?: string;
  }[];
  /** How many there were; absent: those that are kept. */
  readonly findingCount?: number;
  readonly error?: { readonly code: string; readonly message: string };
  readonly failuresInARow: number;
  readonly lastSuccessAtMs?: number;
  /** Sightings of each event, by event name: what repeats is a series. Capped, the oldest go. */
  readonly events: Readonly<Record<string, EventSighting>>;
  /** What the pass would have written, had it been allowed to. Capped. */
  readonly wouldWrite?: readonly string[];
  /** What the last pass that changed something changed. Capped. */
  readonly lastChange?: { readonly atMs: number; readonly changes: readonly string[] };
  /** The loop's own. */
  readonly state?: TableValue;
}

export type RecordedFinding = RunRecord['findings'][number];

/** A record and the item that holds it: what a write is conditional on. */
export interface ReadRunRecord {
  readonly record: RunRecord;
  readonly item: Item;
}

const SCHEMA = 1;
const MAX_FINDINGS = 100;
const MAX_MESSAGE_LENGTH = 500;
/** More than any address, port or Service takes. */
const MAX_NAME_LENGTH = 400;
const MAX_EVENTS = 1000;
const MAX_LINES = 20;

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readRunRecord(
  table: KeyValueTable,
  cluster: string,
  loop: Loop,
): Promise<ReadRunRecord | undefined> {
  const item = await table.get(cluster, runKey(loop));
  return item && { record: decodeRunRecord(item), item };
}

/** Returns when the last pass of a loop that succeeded began. @throws TableError `SchemaTooNew`, `Corrupt`. */
async function lastSuccessOf(table: KeyValueTable, cluster: string, loop: Loop): Promise<number | undefined> {
  const item = await table.get(cluster, runKey(loop));
  return item && fieldsOf(item, SCHEMA).optionalNumber('lastSuccessAtMs');
}

export type RunRecords = Readonly<Partial<Record<Loop, RunRecord>>>;

/** The records of all loops; `undefined` when one of them cannot be read by this version. */
export async function listRunRecords(table: KeyValueTable, cluster: string): Promise<RunRecords | undefined> {
  const items = new Map((await table.list(cluster, 'runs/')).map((item) => [item.key, item]));
  try {
    return Object.fromEntries(
      LOOPS.flatMap((loop) => {
        const item = items.get(runKey(loop));
        return item === undefined ? [] : [[loop, decodeRunRecord(item)]];
      }),
    );
  } catch (error) {
    if (error instanceof TableError) return undefined;
    throw error;
  }
}

/** Writes the record over the one that was read, `undefined` if there was none, cut to a size that always fits. */
export function writeRunRecord(
  table: KeyValueTable,
  cluster: string,
  loop: Loop,
  record: RunRecord,
  previous: Item | undefined,
): Promise<WriteResult<Item>> {
  return table.put({ ...recordContent(record), cluster, key: runKey(loop) }, previous);
}

export function runKey(loop: Loop): string {
  return `runs/${loop}`;
}

function recordContent(record: RunRecord): Omit<NewItem, 'cluster' | 'key'> {
  const { counts, findings, error, events, wouldWrite, lastChange, ...plain } = record;
  const value = {
    ...plain,
    counts: { ...counts },
    findings: findings.slice(0, MAX_FINDINGS).map(cutFinding),
    error: error && { code: error.code, message: cut(error.message) },
    events: latest(events),
    wouldWrite: wouldWrite && cutLines(wouldWrite),
    lastChange: lastChange && { atMs: lastChange.atMs, changes: cutLines(lastChange.changes) },
  };
  return { schema: SCHEMA, value };
}

function latest(events: RunRecord['events']): Record<string, { [field: string]: number }> {
  return Object.fromEntries(
    Object.entries(events)
      .sort(([, one], [, other]) => other.lastSeenAtMs - one.lastSeenAtMs)
      .slice(0, MAX_EVENTS)
      .map(([name, sighting]) => [name, { ...sighting }]),
  );
}

function cutFinding({ type, message, item, service }: RecordedFinding): { readonly [field: string]: string } {
  return {
    type,
    message: cut(message),
    ...(item !== undefined && { item: cut(item, MAX_NAME_LENGTH) }),
    ...(service !== undefined && { service: cut(service, MAX_NAME_LENGTH) }),
  };
}

/** What is left of lines that a pass may write many of. */
export function cutLines(lines: readonly string[]): readonly string[] {
  return lines.slice(0, MAX_LINES).map((line) => cut(line));
}

function cut(text: string, length: number = MAX_MESSAGE_LENGTH): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRunRecord(item: Item): RunRecord {
  const fields = fieldsOf(item, SCHEMA);
  const findingCount = fields.optionalNumber('findingCount');
  const error = fields.optionalFields('error');
  const lastSuccessAtMs = fields.optionalNumber('lastSuccessAtMs');
  const lastChange = fields.optionalFields('lastChange');
  const isWithheld = fieldsIn(item.value)?.['wouldWrite'] !== undefined;
  const state = fieldsIn(item.value)?.['state'];
  return {
    passId: fields.text('passId'),
    startedAtMs: fields.number('startedAtMs'),
    durationMs: fields.number('durationMs'),
    outcome: fields.oneOf('outcome', ['succeeded', 'failed']),
    mode: fields.oneOf('mode', ['observe', 'enforce']),
    observed: fields.flag('observed'),
    counts: fields.each('counts', (counts, name) => counts.number(name)),
    findings: fields.list('findings').map(findingOf),
    failuresInARow: fields.count('failuresInARow'),
    events: fields.each('events', (events, name) => sightingOf(events.fields(name))),
    ...(findingCount !== undefined && { findingCount }),
    ...(error !== undefined && { error: { code: error.text('code'), message: error.text('message') } }),
    ...(lastSuccessAtMs !== undefined && { lastSuccessAtMs }),
    ...(isWithheld && { wouldWrite: fields.texts('wouldWrite', 0) }),
    ...(lastChange !== undefined && {
      lastChange: { atMs: lastChange.number('atMs'), changes: lastChange.texts('changes', 0) },
    }),
    ...(state !== undefined && { state }),
  };
}

function findingOf(fields: ItemFields): RecordedFinding {
  const item = fields.optionalText('item');
  const service = fields.optionalText('service');
  return {
    // Only shown to people: one of another version's types does no harm.
    type: fields.text('type') as FindingType,
    message: fields.text('message'),
    ...(item !== undefined && { item }),
    ...(service !== undefined && { service }),
  };
}

function sightingOf(fields: ItemFields): EventSighting {
  return {
    count: fields.count('count'),
    lastSeenAtMs: fields.number('lastSeenAtMs'),
    lastWrittenAtMs: fields.number('lastWrittenAtMs'),
  };
}

/** How old the last repair of a range may be, in intervals of its loop. */
const INTERVALS = 3;

/**
 * Returns why nothing is to be allocated from ranges whose repair has not succeeded within its last three intervals. A
 * restored table is older than its cluster, and so is its run record: it stays closed until a pass has read the Services.
 * @throws TableError
 */
export async function refusalOfUnrepaired(
  table: KeyValueTable,
  { name, intervalSeconds }: Pick<ClusterSpec, 'name' | 'intervalSeconds'>,
  keys: readonly RangeKey[],
  nowMs: number,
): Promise<AllocatorError | undefined> {
  const loops = new Set(keys.map(repairLoopOf));
  const refusals = await Promise.all(
    [...loops].map(async (loop) => {
      const lastMs = await lastSuccessOf(table, name, loop);
      const longestMs = INTERVALS * intervalSeconds[loop] * 1000;
      // A record of the future comes from a clock that is wrong, and proves nothing.
      const isRecent = lastMs !== undefined && Math.abs(nowMs - lastMs) <= longestMs;
      return isRecent ? undefined : unrepaired(name, loop, lastMs);
    }),
  );
  return refusals.find((refusal) => refusal !== undefined);
}

function unrepaired(cluster: string, loop: Loop, lastMs: number | undefined): AllocatorError {
  const last = lastMs === undefined ? 'none is recorded' : `the last one began at ${new Date(lastMs).toISOString()}`;
  return new AllocatorError(
    'NotReady',
    `no pass of ${loop} has succeeded within its last ${INTERVALS} intervals (${last}), so the table may not know all Services: wait for the next pass, or run "kbctl run-once ${loop} ${cluster}"`,
  );
}
