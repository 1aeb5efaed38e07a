import type { Hold, HoldTerms } from '../cluster/hold.ts';
import { TableError } from './errors.ts';
import { fieldsOf, type ItemFields } from './item-values.ts';
import type { Item, KeyValueTable, TableValue, WriteResult } from './key-value-table.ts';
import { holdOf, holdsValue } from './ranges.ts';

/**
 * `requests/<id>`: the state of a request to allocate or release. Each step is a write that is conditional on the one
 * before:
 *
 *     begun ──────────────────► done
 *       └────► rollingBack ───────┘
 */
export type RequestRecord = {
  /** Of the request's content: the same id with other content is another request. */
  readonly fingerprint: string;
  /** The terms on which everything that it allocates is held; absent for a release. */
  readonly hold?: Omit<HoldTerms, 'requestId'>;
  /**
   * By the name of the range, the holds that it claims, as they were before; absent for a request that is not for a Service.
   */
  readonly takesUp?: Readonly<Record<string, readonly Hold[]>>;
  /** By the name of the range, the holds on what it releases, as they were when it began; only of a release. */
  readonly releases?: Readonly<Record<string, readonly Hold[]>>;
  /** Until then the invocation that began the release may be running. */
  readonly busyUntilMs?: number;
} & (
  | { readonly state: 'begun' }
  /** What was allocated is released, and then this is the answer. JSON. */
  | { readonly state: 'rollingBack'; readonly answer: string }
  | { readonly state: 'done'; readonly answer: string }
);

/** A record and the item that holds it: what the next step is conditional on. */
export interface ReadRequest {
  readonly record: RequestRecord;
  readonly item: Item;
}

const SCHEMA = 1;
/** From the last step on. */
const KEPT_MS = 24 * 60 * 60 * 1000;

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readRequest(table: KeyValueTable, cluster: string, id: string): Promise<ReadRequest | undefined> {
  const item = await table.get(cluster, requestKey(id));
  return item && { record: decodeRequest(item), item };
}

/** A record counts for a day. The table keeps it longer. */
export function isKept({ item }: ReadRequest, nowMs: number): boolean {
  return item.expiresAtMs === undefined || item.expiresAtMs > nowMs;
}

export function writeRequest(
  table: KeyValueTable,
  request: { readonly cluster: string; readonly id: string; readonly nowMs: number },
  record: RequestRecord,
  previous: Item | undefined,
): Promise<WriteResult<Item>> {
  const { cluster, id, nowMs } = request;
  const { hold, takesUp, releases } = record;
  const value = {
    ...record,
    hold: hold && { ...hold },
    takesUp: takesUp && holdsByRange(takesUp),
    releases: releases && holdsByRange(releases),
  };
  return table.put({ cluster, key: requestKey(id), schema: SCHEMA, value, expiresAtMs: nowMs + KEPT_MS }, previous);
}

/** The error of a record whose answer does not parse. */
export function corruptAnswer({ item }: ReadRequest, cause: unknown): TableError {
  return new TableError(
    'Corrupt',
    `Item ${item.cluster}/${item.key} does not parse: its answer is not valid. It was not changed; remove it to start again.`,
    { cause },
  );
}

function requestKey(id: string): string {
  return `requests/${id}`;
}

function decodeRequest(item: Item): RequestRecord {
  const fields = fieldsOf(item, SCHEMA);
  const hold = fields.optionalFields('hold');
  const [takesUp, releases] = ['takesUp', 'releases'].map(
    (field) => fields.optionalFields(field) && fields.each(field, (ranges, name) => ranges.list(name).map(holdOf)),
  );
  const busyUntilMs = fields.optionalNumber('busyUntilMs');
  const common = {
    fingerprint: fields.text('fingerprint'),
    ...(hold && { hold: holdIn(hold) }),
    ...(takesUp && { takesUp }),
    ...(releases && { releases }),
    ...(busyUntilMs !== undefined && { busyUntilMs }),
  };
  const state = fields.oneOf('state', ['begun', 'rollingBack', 'done']);
  return state === 'begun' ? { ...common, state } : { ...common, state, answer: fields.text('answer') };
}

function holdsByRange(holds: Readonly<Record<string, readonly Hold[]>>): TableValue {
  return Object.fromEntries(Object.entries(holds).map(([range, each]) => [range, holdsValue(each)]));
}

function holdIn(fields: ItemFields): Omit<HoldTerms, 'requestId'> {
  const untilMs = fields.optionalNumber('untilMs');
  return {
    owner: fields.text('owner'),
    takenUpBy: fields.oneOf('takenUpBy', ['any', 'owner']),
    ...(untilMs !== undefined && { untilMs }),
  };
}
