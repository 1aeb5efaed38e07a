import * as z from 'zod/mini';
import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import type { EventSighting, FindingType } from '../cluster/finding.ts';
import { type Item, type KeyValueTable, TableError, type TableValue, type WriteResult } from './key-value-table.ts';
import { count, decodeItem, plainValue } from './stored-item.ts';

const time = z.number();
const lines = z.readonly(z.array(z.string()));

const findingShape = z.object({
  // Only shown to users, so unknown types of another version are harmless.
  type: z.custom<FindingType>((type) => typeof type === 'string', 'is not of type string'),
  message: z.string(),
  item: z.exactOptional(z.string()),
  /** The affected Service: `namespace/name`. */
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
  /** The findings that status pages and commands show. Their number is capped. */
  findings: z.readonly(z.array(z.readonly(findingShape))),
  /** The number of findings; absent if all of them are kept. */
  findingCount: z.exactOptional(z.number()),
  error: z.exactOptional(z.readonly(z.object({ code: z.string(), message: z.string() }))),
  failuresInARow: count,
  /** The number of passes in a row without an answer of the API server or any probe. Absent: none. */
  withoutAnswer: z.exactOptional(count),
  lastSuccessAtMs: z.exactOptional(time),
  /** Sightings of each event, by event name: repeated events become a series. `planEvents` caps them. */
  events: z.readonly(z.record(z.string(), sightingShape)),
  /** The writes that an observing pass would have made. Capped. */
  wouldWrite: z.exactOptional(lines),
  /** The changes of the last pass that changed something. Capped. */
  lastChange: z.exactOptional(z.readonly(z.object({ atMs: time, changes: lines }))),
  state: z.exactOptional(z.custom<TableValue>()),
});

const successShape = z.pick(recordShape, { lastSuccessAtMs: true });

/** `runs/<loop>`: the last pass of a loop, and the state for its next one. */
export type RunRecord = Readonly<z.infer<typeof recordShape>>;

export type RecordedFinding = RunRecord['findings'][number];

/** A record and its item, which is the condition of a write. */
export interface ReadRunRecord {
  readonly record: RunRecord;
  readonly item: Item;
}

const SCHEMA = 1;
/** Only one pass at a time writes it: with more traces the record of three API servers would exceed 1 KB. */
const WRITES_KEPT = 8;
/** The number of findings that a record keeps. */
export const MAX_FINDINGS = 20;
const MAX_MESSAGE_LENGTH = 500;
/** Longer than any address, port or Service name. */
const MAX_NAME_LENGTH = 400;
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

/**
 * Returns when the last pass of a loop that succeeded began.
 * @throws TableError `SchemaTooNew`, `Corrupt`.
 */
export async function lastSuccessOf(table: KeyValueTable, cluster: string, loop: Loop): Promise<number | undefined> {
  const item = await table.get(cluster, runKey(loop));
  return item && decodeItem(item, successShape, SCHEMA).lastSuccessAtMs;
}

export type RunRecords = Readonly<Partial<Record<Loop, RunRecord>>>;

/** Returns the records of all loops; `undefined` if this version cannot read one of them. */
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

/** Replaces the record that was read (`undefined`: there was none), cut to a size that always fits. */
export function writeRunRecord(
  table: KeyValueTable,
  cluster: string,
  loop: Loop,
  record: RunRecord,
  previous: Item | undefined,
): Promise<WriteResult<Item>> {
  const { findings, error, wouldWrite, lastChange } = record;
  const value = plainValue({
    ...record,
    findings: findings.slice(0, MAX_FINDINGS).map(cutFinding),
    error: error && { code: error.code, message: cut(error.message) },
    wouldWrite: wouldWrite && cutLines(wouldWrite),
    lastChange: lastChange && { atMs: lastChange.atMs, changes: cutLines(lastChange.changes) },
  });
  return table.put({ cluster, key: runKey(loop), value, schema: SCHEMA, writesKept: WRITES_KEPT }, previous);
}

export function runKey(loop: Loop): string {
  return `runs/${loop}`;
}

/** Returns the parts of a finding that a record keeps. */
export function cutFinding({ type, message, item, service }: RecordedFinding): RecordedFinding {
  return {
    type,
    message: cut(message),
    ...(item !== undefined && { item: cut(item, MAX_NAME_LENGTH) }),
    ...(service !== undefined && { service: cut(service, MAX_NAME_LENGTH) }),
  };
}

/** Returns the first lines of a long list. */
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
