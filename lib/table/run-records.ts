import * as z from 'zod/mini';
import { type EventSighting, type FindingType, PASSING_FINDINGS } from '../cluster/finding.ts';
import { LOOPS, type Loop } from '../spec/cluster-spec.ts';
import { count } from '../spec/shapes.ts';
import { attempt, cutText, defined } from '../util/values.ts';
import type { Item, KeyValueTable, TableValue, WriteResult } from './key-value-table.ts';
import { decodeItem, plainValue } from './stored-item.ts';

const time = z.number();
const lines = z.readonly(z.array(z.string()));

const findingShape = z.object({
  // The type is only displayed, so an unknown type of another version does no harm.
  type: z.custom<FindingType>((type) => typeof type === 'string', 'is not of type string'),
  message: z.string(),
  item: z.exactOptional(z.string()),
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
  /** True if this pass or an earlier pass ran in `observe`, and no pass in `enforce` has succeeded since. */
  observed: z.boolean(),
  counts: z.readonly(z.record(z.string(), z.number())),
  /** The findings for the status page and the commands. Only 20 are kept, with at least one of each type. */
  findings: z.readonly(z.array(z.readonly(findingShape))),
  /** The number of all findings by type. Absent if `findings` contains all findings. */
  findingCounts: z.exactOptional(z.readonly(z.record(z.string(), count))),
  /** `server`: the API server whose error made the pass fail. Absent for other errors. */
  error: z.exactOptional(
    z.readonly(z.object({ code: z.string(), message: z.string(), server: z.exactOptional(z.string()) })),
  ),
  failuresInARow: count,
  /** The number of consecutive passes that ended without an answer (`isWithoutAnswer`). Absent if it is 0. */
  withoutAnswer: z.exactOptional(count),
  lastSuccessAtMs: z.exactOptional(time),
  /** The sightings of each event, by name, so that repeated events become a series. `planEvents` limits the number of names. */
  events: z.readonly(z.record(z.string(), sightingShape)),
  /** The writes that a pass in `observe` would have made: the first 20, and a line with the number of further writes. */
  wouldWrite: z.exactOptional(lines),
  /** The changes of the last pass that changed something. Only the first 20 are kept. */
  lastChange: z.exactOptional(z.readonly(z.object({ atMs: time, changes: lines }))),
  state: z.exactOptional(z.custom<TableValue>()),
});

const successShape = z.pick(recordShape, { lastSuccessAtMs: true });

/** The record of the last pass of a loop, with the state for the next pass. It is stored as `runs/<loop>`. */
export type RunRecord = Readonly<z.infer<typeof recordShape>>;

export type RecordedFinding = RunRecord['findings'][number];

export interface ReadRunRecord {
  readonly record: RunRecord;
  readonly item: Item;
}

const SCHEMA = 1;
/**
 * The number of earlier writes that a record remembers. Few are enough, because one pass at a time writes a record. With more,
 * the records of small clusters would exceed 1 KB.
 */
const WRITES_KEPT = 8;
export const MAX_FINDINGS = 20;
const MAX_MESSAGE_LENGTH = 500;
/** The maximum number of characters of an address, port, Service or URL. It is longer than any valid value. */
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

/** Returns the start time of the last successful pass of a loop. @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function lastSuccessOf(table: KeyValueTable, cluster: string, loop: Loop): Promise<number | undefined> {
  const item = await table.get(cluster, runKey(loop));
  return item && decodeItem(item, successShape, SCHEMA).lastSuccessAtMs;
}

export type RunRecords = Readonly<Partial<Record<Loop, RunRecord>>>;

/** Returns the records of all loops; `undefined` if this version cannot read one of them. */
export async function listRunRecords(table: KeyValueTable, cluster: string): Promise<RunRecords | undefined> {
  const items = await table.list(cluster, 'runs/');
  return attempt(() =>
    Object.fromEntries(
      LOOPS.flatMap((loop) => {
        const item = items.find(({ key }) => key === runKey(loop));
        return item === undefined ? [] : [[loop, decodeRunRecord(item)]];
      }),
    ),
  );
}

/** Replaces `previous`, the record that was read, if any. Cuts the new record to a size that always fits. */
export function writeRunRecord(
  table: KeyValueTable,
  cluster: string,
  loop: Loop,
  record: RunRecord,
  previous: Item | undefined,
): Promise<WriteResult> {
  const { findings, error, wouldWrite, lastChange } = record;
  const value = plainValue({
    ...record,
    findings: keptFindings(findings).map(cutFinding),
    error: error && {
      code: error.code,
      message: cutText(error.message, MAX_MESSAGE_LENGTH),
      server: error.server && cutText(error.server, MAX_NAME_LENGTH),
    },
    wouldWrite: wouldWrite && cutLines(wouldWrite, 'writes'),
    lastChange: lastChange && { atMs: lastChange.atMs, changes: cutLines(lastChange.changes, 'changes') },
  });
  return table.put({ cluster, key: runKey(loop), value, schema: SCHEMA, writesKept: WRITES_KEPT }, previous);
}

/** Returns the findings that a record keeps: at least one of each type. Findings that require action come first. */
export function keptFindings<Found extends RecordedFinding>(findings: readonly Found[]): readonly Found[] {
  const alike = [...Map.groupBy(findings, ({ type }) => type)]
    .toSorted(([one], [other]) => Number(PASSING_FINDINGS.has(one)) - Number(PASSING_FINDINGS.has(other)))
    .map(([, ofType]) => ofType);
  let left = MAX_FINDINGS - alike.length;
  return alike.flatMap(([first, ...others]) => {
    const more = others.slice(0, left);
    left -= more.length;
    return first === undefined ? [] : [first, ...more];
  });
}

/** Returns the number of all findings by type. */
export function findingCounts({ findings, findingCounts: counts }: RunRecord): Map<string, number> {
  if (counts !== undefined) return new Map(Object.entries(counts));
  return new Map([...Map.groupBy(findings, ({ type }) => type)].map(([type, alike]) => [type, alike.length]));
}

export function runKey(loop: Loop): string {
  return `runs/${loop}`;
}

export function cutFinding({ type, message, item, service }: RecordedFinding): RecordedFinding {
  return {
    type,
    message: cutText(message, MAX_MESSAGE_LENGTH),
    ...defined({ item: item && cutText(item, MAX_NAME_LENGTH), service: service && cutText(service, MAX_NAME_LENGTH) }),
  };
}

export function cutLines(lines: readonly string[], noun: 'writes' | 'changes'): readonly string[] {
  const kept = lines.slice(0, MAX_LINES).map((line) => cutText(line, MAX_MESSAGE_LENGTH));
  const verb = noun === 'writes' ? 'make' : 'made';
  return lines.length > MAX_LINES ? [...kept, `${verb} ${lines.length - MAX_LINES} more ${noun}`] : kept;
}

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export function decodeRunRecord(item: Item): RunRecord {
  return decodeItem(item, recordShape, SCHEMA);
}
