import * as z from 'zod/mini';
import type { RangeSnapshot } from '../allocator/range-allocator.ts';
import { trimmed } from '../allocator/snapshot-bytes.ts';
import { ExchangeError, jsonFaults } from './errors.ts';
import {
  metadataFromJson,
  metadataFromProtobuf,
  metadataShape,
  metadataToProtobuf,
  type ObjectMetadata,
} from './object-meta.ts';
import { bytesField, bytesIn, joined, readFields, textIn } from './protobuf.ts';
import { base64Of, checkBits, dataFromBase64, type RangeItems, rangeItems } from './range-items.ts';

/**
 * The original's object under `/registry/ranges/` (`RangeAllocation` of `k8s.io/api/core/v1`). `data` has no leading
 * zero bytes and marks no more than what `range` has.
 */
export interface RangeAllocation extends RangeSnapshot {
  readonly metadata: ObjectMetadata;
}

export const RANGE_ALLOCATION = { apiVersion: 'v1', kind: 'RangeAllocation' } as const;

/** `k8s\0`, before every protobuf body of the API. */
export const MAGIC = Uint8Array.of(0x6b, 0x38, 0x73, 0x00);

// Field numbers: k8s.io/apimachinery/pkg/runtime/generated.proto and k8s.io/api/core/v1/generated.proto.
const UNKNOWN = { typeMeta: 1, raw: 2, contentEncoding: 3, contentType: 4 } as const;
const TYPE_META = { apiVersion: 1, kind: 2 } as const;
const ALLOCATION = { metadata: 1, range: 2, data: 3 } as const;

const shape = z.looseObject({
  metadata: z.optional(z.nullable(metadataShape)),
  range: z.string(),
  data: z.optional(z.nullable(z.string())),
});

/** As an API server reads it, from `kubectl create --raw` or from etcd. */
export function rangeAllocationToJson({ metadata, range, data }: RangeAllocation): string {
  return `${JSON.stringify({ ...RANGE_ALLOCATION, metadata, range, data: base64Of(data) }, undefined, 2)}\n`;
}

/** @param value parsed JSON of this kind. @throws ExchangeError `Malformed`, `NotInRange`. */
export function rangeAllocationFromJson(value: unknown): RangeAllocation {
  const parsed = shape.safeParse(value);
  if (!parsed.success) throw jsonFaults(parsed.error);
  const { metadata, range, data } = parsed.data;
  return checked({ metadata: metadataFromJson(metadata ?? {}), range, data: dataFromBase64(data ?? '') });
}

/** The bytes that an API server stores in etcd, to the last one. */
export function rangeAllocationToStorage({ metadata, range, data }: RangeAllocation): Uint8Array {
  const typeMeta = joined(
    bytesField(TYPE_META.apiVersion, RANGE_ALLOCATION.apiVersion),
    bytesField(TYPE_META.kind, RANGE_ALLOCATION.kind),
  );
  const raw = joined(
    bytesField(ALLOCATION.metadata, metadataToProtobuf(metadata)),
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
      `The object in it is encoded as ${shown(encoding)}, which is not read here.`,
    );
  }
  const fields = readFields(bytesIn(envelope, UNKNOWN.raw));
  return checked({
    metadata: metadataFromProtobuf(bytesIn(fields, ALLOCATION.metadata)),
    range: textIn(fields, ALLOCATION.range),
    data: trimmed(bytesIn(fields, ALLOCATION.data)),
  });
}

export function wrongKind(apiVersion: string, kind: string): ExchangeError {
  const found = apiVersion === '' && kind === '' ? 'says of no kind' : `is a ${shown(`${apiVersion} ${kind}`.trim())}`;
  return new ExchangeError(
    'WrongKind',
    `The file ${found}. What can be read are a v1 RangeAllocation and a kube-bootstrap-controller/v1 ClusterRanges.`,
  );
}

function checked(allocation: RangeAllocation): RangeAllocation {
  const items: RangeItems | ExchangeError = rangeItems(allocation.range);
  if (items instanceof ExchangeError) throw items;
  checkBits(allocation.data, items);
  return allocation;
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text);
}
