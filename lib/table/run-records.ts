import * as z from 'zod/mini';
import { AllocatorError } from '../allocator/errors.ts';
import { type ClusterSpec, LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import type { EventSighting, FindingType } from '../cluster/finding.ts';
import { type RangeKey, repairLoopOf } from '../cluster/spec-ranges.ts';
import { count, decodeItem } from './decode-item.ts';
import { TableError } from './errors.ts';
import { plainValue } from './item-values.ts';
import type { Item, KeyValueTable, NewItem, TableValue, WriteResult } from './key-value-table.ts';

const time = z.number();
const lines = z.readonly(z.array(z.string()));

const findingShape = z.object({
  // Only shown to people: one of another version's types does no harm.
  type: z.custom<FindingType>((type) => typeof type === 'string', 'is not of type string'),
  message: z.string(),
  item: z.exactOptional(z.string()),
  /** The Service it is about: `namespace/name`. */
  service: z.exactOptional(z.string()),
});

const sightingShape: z.ZodMiniType<EventSighting> = z.object({
  count,
  lastSeenAtMs: time,
  lastWrittenAtMs: time,
});

const recordShape = z.object({
  passId: z.string(),
  startedAtMs: time,
  durationMs: z.number(),
  outcome: z.enum(['succeeded', 'failed']),
  mode: z.enum(['observe', 'enforce']),
  /** No enforcing pass has succeeded since one that only observed. */
  observed: z.boolean(),
  counts: z.readonly(z.record(z.string(), z.number())),
  /** For people, and capped. */
  findings: z.readonly(z.array(z.readonly(findingShape))),
  /** How many there were; absent: those that are kept. */
  findingCount: z.exactOptional(z.number()),
  error: z.exactOptional(z.readonly(z.object({ code: z.string(), message: z.string() }))),
  failuresInARow: count,
  /** Passes in a row to which neither the API server nor any probed address gave an answer. Absent: none. */
  withoutAnswer: z.exactOptional(count),
  lastSuccessAtMs: z.exactOptional(time),
  /** Sightings of each event, by event name: what repeats is a series. Capped, the oldest go. */
  events: z.readonly(z.record(z.string(), sightingShape)),
  /** What the pass would have written, had it been allowed to. Capped. */
  wouldWrite: z.exactOptional(lines),
  /** What the last pass that changed something changed. Capped. */
  lastChange: z.exactOptional(z.readonly(z.object({ atMs: time, changes: lines }))),
  state: z.exactOptional(z.custom<TableValue>()),
});

const successShape = z.pick(recordShape, { lastSuccessAtMs: true });

/** `runs/<loop>`: the last pass of a loop, and what the loop must remember until its next one. */
export type RunRecord = Readonly<z.infer<typeof recordShape>>;

export type RecordedFinding = RunRecord['findings'][number];

/** A record and the item that holds it: what a write is conditional on. */
export interface ReadRunRecord {
  readonly record: RunRecord;
  readonly item: Item;
}

const SCHEMA = 1;
/** One pass at a time writes it: with more traces the record of three API servers would be more than 1 KB. */
const WRITES_KEPT = 8;
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
  return item && decodeItem(item, successShape, SCHEMA).lastSuccessAtMs;
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
  return table.put({ ...recordContent(record), cluster, key: runKey(loop), writesKept: WRITES_KEPT }, previous);
}

export function runKey(loop: Loop): string {
  return `runs/${loop}`;
}

function recordContent(record: RunRecord): Omit<NewItem, 'cluster' | 'key'> {
  const { findings, error, events, wouldWrite, lastChange } = record;
  const value = plainValue({
    ...record,
    findings: findings.slice(0, MAX_FINDINGS).map(cutFinding),
    error: error && { code: error.code, message: cut(error.message) },
    events: latest(events),
    wouldWrite: wouldWrite && cutLines(wouldWrite),
    lastChange: lastChange && { atMs: lastChange.atMs, changes: cutLines(lastChange.changes) },
  });
  return { schema: SCHEMA, value };
}

function latest(events: RunRecord['events']): RunRecord['events'] {
  const latestFirst = Object.entries(events).sort(([, one], [, other]) => other.lastSeenAtMs - one.lastSeenAtMs);
  return Object.fromEntries(latestFirst.slice(0, MAX_EVENTS));
}

/** Returns what a record keeps of a finding. */
export function cutFinding({ type, message, item, service }: RecordedFinding): RecordedFinding {
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
  return decodeItem(item, recordShape, SCHEMA);
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
