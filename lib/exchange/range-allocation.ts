import * as z from 'zod/mini';
import { type RangeSnapshot, trimmed } from '../allocator/snapshot-bytes.ts';
import { shapeFaults } from '../cluster/shape-faults.ts';
import { boundedText } from '../cluster/values.ts';
import { ExchangeError, malformed } from './errors.ts';
import { bytesField, bytesIn, integerField, integerIn, joined, readFields, textIn } from './protobuf.ts';
import { base64Of, checkBits, dataFromBase64, rangeItems } from './range-items.ts';

/**
 * The original's object under `/registry/ranges/` (`RangeAllocation` of `k8s.io/api/core/v1`). `data` has no leading
 * zero bytes and marks no more than what `range` has. Of its metadata, which API servers leave empty, only the creation
 * time is read.
 */
export interface RangeAllocation extends RangeSnapshot {
  /** RFC 3339 in whole seconds, UTC: `2019-03-01T12:00:00Z`. */
  readonly createdAt?: string;
}

export const RANGE_ALLOCATION = { apiVersion: 'v1', kind: 'RangeAllocation' } as const;

/** `k8s\0`, before every protobuf body of the API. */
export const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

// Field numbers: generated.proto of k8s.io/apimachinery/pkg/{runtime,apis/meta/v1} and of k8s.io/api/core/v1.
const UNKNOWN = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 } as const;
const TYPE_META = { apiVersion: 1, kind: 2 } as const;
const ALLOCATION = { metadata: 1, range: 2, data: 3 } as const;
const METADATA = { generation: 7, creationTimestamp: 8 } as const;
/** `name`, `generateName`, `namespace`, `selfLink`, `uid`, `resourceVersion`. */
const METADATA_TEXTS = [1, 2, 3, 4, 5, 6];
const EMPTY = new Uint8Array(0);

const shape = z.looseObject({
  metadata: z.optional(z.nullable(z.looseObject({ creationTimestamp: z.optional(z.nullable(z.string())) }))),
  range: z.string(),
  data: z.optional(z.nullable(z.string())),
});

/** As an API server reads it, from `kubectl create --raw` or from etcd. */
export function rangeAllocationToJson({ range, data }: RangeSnapshot): string {
  return `${JSON.stringify({ ...RANGE_ALLOCATION, metadata: {}, range, data: base64Of(data) }, undefined, 2)}\n`;
}

/** @param value parsed JSON of this kind. @throws ExchangeError `Malformed`, `NotInRange`. */
export function rangeAllocationFromJson(value: unknown): RangeAllocation {
  const parsed = shape.safeParse(value);
  if (!parsed.success) throw malformed(shapeFaults(parsed.error, 'the file'));
  const { metadata, range, data } = parsed.data;
  const created = metadata?.creationTimestamp;
  return checked(range, dataFromBase64(data ?? ''), created ? Date.parse(created) / 1000 : undefined);
}

/** The bytes that an API server stores in etcd, to the last one. */
export function rangeAllocationToStorage({ range, data }: RangeSnapshot): Uint8Array {
  const typeMeta = joined(
    bytesField(TYPE_META.apiVersion, RANGE_ALLOCATION.apiVersion),
    bytesField(TYPE_META.kind, RANGE_ALLOCATION.kind),
  );
  const raw = joined(
    bytesField(ALLOCATION.metadata, emptyMetadata()),
    bytesField(ALLOCATION.range, range),
    bytesField(ALLOCATION.data, trimmed(data)),
  );
  return joined(
    MAGIC,
    bytesField(UNKNOWN.typeMeta, typeMeta),
    bytesField(UNKNOWN.raw, raw),
    bytesField(UNKNOWN.contentEncoding, ''),
    bytesField(UNKNOWN.contentType, ''),
  );
}

/** @param bytes begin with `MAGIC`. @throws ExchangeError `WrongKind`, `Malformed`, `NotInRange`. */
export function rangeAllocationFromStorage(bytes: Uint8Array): RangeAllocation {
  const envelope = readFields(bytes.subarray(MAGIC.length));
  const typeMeta = readFields(bytesIn(envelope, UNKNOWN.typeMeta));
  const apiVersion = textIn(typeMeta, TYPE_META.apiVersion);
  const kind = textIn(typeMeta, TYPE_META.kind);
  if (apiVersion !== RANGE_ALLOCATION.apiVersion || kind !== RANGE_ALLOCATION.kind) throw wrongKind(apiVersion, kind);
  const encoding = textIn(envelope, UNKNOWN.contentEncoding) || textIn(envelope, UNKNOWN.contentType);
  if (encoding !== '') {
    throw new ExchangeError(
      'UnknownForm',
      `The object in it is encoded as "${boundedText(encoding, 80)}", which is not read here.`,
    );
  }
  const fields = readFields(bytesIn(envelope, UNKNOWN.raw));
  const created = bytesIn(readFields(bytesIn(fields, ALLOCATION.metadata)), METADATA.creationTimestamp);
  return checked(
    textIn(fields, ALLOCATION.range),
    trimmed(bytesIn(fields, ALLOCATION.data)),
    created.length === 0 ? undefined : Number(integerIn(readFields(created), 1)),
  );
}

export function wrongKind(apiVersion: string, kind: string): ExchangeError {
  const found = apiVersion === '' && kind === '' ? 'has no kind' : `is a "${boundedText(`${apiVersion} ${kind}`, 80)}"`;
  return new ExchangeError(
    'WrongKind',
    `The file ${found}. What can be read are a v1 RangeAllocation and a kube-bootstrap-controller/v1 ClusterRanges.`,
  );
}

/** As Go writes it: every field that is no pointer, also when it is empty. */
function emptyMetadata(): Uint8Array {
  return joined(
    ...METADATA_TEXTS.map((number) => bytesField(number, '')),
    integerField(METADATA.generation, 0n),
    bytesField(METADATA.creationTimestamp, EMPTY),
  );
}

function checked(range: string, data: Uint8Array, createdSeconds: number | undefined): RangeAllocation {
  const items = rangeItems(range);
  if (items instanceof ExchangeError) throw items;
  checkBits(data, items);
  if (createdSeconds === undefined) return { range, data };
  const created = new Date(Math.floor(createdSeconds) * 1000);
  if (Number.isNaN(created.getTime())) throw malformed('its metadata.creationTimestamp is no time');
  return { range, data, createdAt: created.toISOString().replace('.000Z', 'Z') };
}
