import * as z from 'zod/mini';
import { AllocatorError } from '../allocator/errors.ts';
import { popCount, type RangeSnapshot } from '../allocator/snapshot-bytes.ts';
import type { AllocatorOfRecord } from '../cluster/cluster-spec.ts';
import { badHold, type Hold } from '../cluster/hold.ts';
import { shapeFaults } from '../cluster/shape-faults.ts';
import { RANGE_KEYS, type RangeKey } from '../cluster/spec-ranges.ts';
import { boundedText } from '../cluster/values.ts';
import { ExchangeError, malformed } from './errors.ts';
import { base64Of, checkBits, dataFromBase64, type RangeItems, rangeItems } from './range-items.ts';

/** The ranges of one cluster, as they were exported: our own form, which keeps holds. */
export interface ClusterRanges {
  readonly cluster: string;
  readonly exportedAtMs: number;
  /** Of the spec, at which ranges or allocator last changed. */
  readonly generation: number;
  /** Each at most once. */
  readonly ranges: readonly ExportedRange[];
}

export interface ExportedRange extends RangeSnapshot {
  readonly key: RangeKey;
  /** With `apiserver` it is a usage bitmap, and no record that could be imported. */
  readonly allocator: AllocatorOfRecord;
  /** Every item of them is in `data`; none is in two. */
  readonly holds: readonly Hold[];
  /** When an enforcing pass of its loop last succeeded; absent when none did. */
  readonly lastPassAtMs?: number;
}

export const CLUSTER_RANGES = { apiVersion: 'kube-bootstrap-controller/v1', kind: 'ClusterRanges' } as const;

const time = z.string().check(z.refine((text) => !Number.isNaN(Date.parse(text))));
const count = z.int().check(z.gte(0));

const hold = z.strictObject({
  items: z.array(z.string()).check(z.minLength(1)),
  owner: z.string(),
  until: z.optional(time),
  takenUpBy: z.enum(['any', 'owner']),
  requestId: z.optional(z.string()),
});

const exported = z.strictObject({
  key: z.enum(RANGE_KEYS),
  range: z.string(),
  allocator: z.enum(['table', 'apiserver']),
  lastPassAt: z.optional(time),
  used: count,
  data: z.string(),
  holds: z.array(hold),
});

const shape = z.strictObject({
  apiVersion: z.literal(CLUSTER_RANGES.apiVersion),
  kind: z.literal(CLUSTER_RANGES.kind),
  cluster: z.string().check(z.minLength(1)),
  exportedAt: time,
  generation: count,
  ranges: z.array(exported),
});

export function clusterRangesToJson({ cluster, exportedAtMs, generation, ranges }: ClusterRanges): string {
  const file: z.input<typeof shape> = {
    ...CLUSTER_RANGES,
    cluster,
    exportedAt: timeText(exportedAtMs),
    generation,
    ranges: ranges.map(rangeValue),
  };
  return `${JSON.stringify(file, undefined, 2)}\n`;
}

/** @param value parsed JSON of this kind. @throws ExchangeError `Malformed`, `NotInRange`. */
export function clusterRangesFromJson(value: unknown): ClusterRanges {
  const parsed = shape.safeParse(value);
  if (!parsed.success) throw malformed(shapeFaults(parsed.error, 'the file'));
  const { cluster, exportedAt, generation, ranges } = parsed.data;
  const keys = new Set(ranges.map(({ key }) => key));
  if (keys.size < ranges.length) throw malformed('it has the same range twice');
  return { cluster, exportedAtMs: Date.parse(exportedAt), generation, ranges: ranges.map(rangeFrom) };
}

function rangeValue({ key, range, allocator, lastPassAtMs, data, holds }: ExportedRange): z.input<typeof exported> {
  return {
    key,
    range,
    allocator,
    ...(lastPassAtMs !== undefined && { lastPassAt: timeText(lastPassAtMs) }),
    used: popCount(data),
    data: base64Of(data),
    holds: holds.map(({ items, owner, untilMs, takenUpBy, requestId }) => ({
      items: [...items],
      owner,
      ...(untilMs !== undefined && { until: timeText(untilMs) }),
      takenUpBy,
      ...(requestId !== undefined && { requestId }),
    })),
  };
}

function rangeFrom(value: z.infer<typeof exported>): ExportedRange {
  const { key, range, allocator, lastPassAt, used } = value;
  const items = rangeItems(range);
  if (items instanceof ExchangeError) throw items;
  const data = dataFromBase64(value.data);
  checkBits(data, items);
  if (popCount(data) !== used) {
    throw malformed(`${key} has "used": ${used}, and its data marks ${popCount(data)}`);
  }
  const holds = value.holds.map(holdFrom);
  checkHolds(key, holds, items, data);
  const lastPassAtMs = lastPassAt === undefined ? undefined : Date.parse(lastPassAt);
  return { key, range: items.range, allocator, data, holds, ...(lastPassAtMs !== undefined && { lastPassAtMs }) };
}

function holdFrom({ until, items, owner, takenUpBy, requestId }: z.infer<typeof hold>): Hold {
  return {
    items,
    owner,
    takenUpBy,
    ...(until !== undefined && { untilMs: Date.parse(until) }),
    ...(requestId !== undefined && { requestId }),
  };
}

function checkHolds(key: RangeKey, holds: readonly Hold[], { has }: RangeItems, data: Uint8Array): void {
  const held = new Set<string>();
  for (const terms of holds) {
    const bad = badHold(terms);
    if (bad instanceof AllocatorError) throw malformed(`${key} has an invalid hold: ${bad.message}`);
    for (const item of terms.items) {
      if (held.has(item)) throw malformed(`${key} has two holds of "${boundedText(item, 80)}"`);
      if (!has(data, item))
        throw malformed(`${key} has a hold of "${boundedText(item, 80)}", which its data does not mark`);
      held.add(item);
    }
  }
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
