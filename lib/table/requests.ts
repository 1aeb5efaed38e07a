import * as z from 'zod/mini';
import type { Hold } from '../range/hold.ts';
import type { Item, KeyValueTable, WriteResult } from './key-value-table.ts';
import { holdShape } from './ranges.ts';
import { decodeItem, plainValue } from './stored-item.ts';

const holds: z.ZodMiniType<readonly Hold[]> = z.array(holdShape);
const holdsByRange = z.record(z.string(), holds);

const common = {
  /** A hash of the request's content. A request with the same id and different content is another request. */
  fingerprint: z.string(),
  /** The owner, claim rule (`takenUpBy`) and end time that all holds of the request have. Absent for a release. */
  hold: z.exactOptional(z.omit(holdShape, { items: true, requestId: true })),
  /** The holds that the request may claim, by range, as they were before the request. Absent if the request has no Service. */
  takesUp: z.exactOptional(holdsByRange),
  /** The holds on the items to release, by range, as they were before the release began. Absent for an allocation. */
  releases: z.exactOptional(holdsByRange),
  /** The time until which the invocation that began the release may still run. */
  busyUntilMs: z.exactOptional(z.number()),
};

/**
 * The state of a request to allocate or release, which is stored as `requests/<id>`. Each step is a write that is conditional
 * on the previous step:
 *
 *     begun ──────────────────► done
 *       └────► rollingBack ───────┘
 */
const requestShape = z.discriminatedUnion('state', [
  z.object({ ...common, state: z.literal('begun') }),
  /** The request failed, and its items are being released. `answer` is the JSON that the caller gets after the release. */
  z.object({ ...common, state: z.literal('rollingBack'), answer: z.string() }),
  z.object({ ...common, state: z.literal('done'), answer: z.string() }),
]);
export type RequestRecord = Readonly<z.infer<typeof requestShape>>;

export interface ReadRequest {
  readonly record: RequestRecord;
  readonly item: Item;
}

const SCHEMA = 1;
/** A record is valid for this long after its last step. */
const KEPT_MS = 24 * 60 * 60 * 1000;

/** @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function readRequest(table: KeyValueTable, cluster: string, id: string): Promise<ReadRequest | undefined> {
  const item = await table.get(cluster, requestKey(id));
  return item && { record: decodeItem(item, requestShape, SCHEMA), item };
}

/** Returns true until one day after the last step of the request. The table keeps the record longer. */
export function isKept({ item }: ReadRequest, nowMs: number): boolean {
  return item.expiresAtMs === undefined || item.expiresAtMs > nowMs;
}

export function writeRequest(
  table: KeyValueTable,
  request: { readonly cluster: string; readonly id: string; readonly nowMs: number },
  record: RequestRecord,
  previous: Item | undefined,
): Promise<WriteResult> {
  const { cluster, id, nowMs } = request;
  return table.put(
    { cluster, key: requestKey(id), schema: SCHEMA, value: plainValue(record), expiresAtMs: nowMs + KEPT_MS },
    previous,
  );
}

export function requestKey(id: string): string {
  return `requests/${id}`;
}
