import * as z from 'zod/mini';
import { malformed } from './errors.ts';
import {
  bytesField,
  bytesIn,
  integerField,
  integerIn,
  joined,
  readFields,
  textIn,
  type WireField,
} from './protobuf.ts';

/** What is kept of an object's metadata. API servers leave all of it empty in a `RangeAllocation`. */
export interface ObjectMetadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  /** RFC 3339 in whole seconds, UTC: `2019-03-01T12:00:00Z`. */
  readonly creationTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

// Field numbers: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
const NAME = 1;
const NAMESPACE = 3;
const UID = 5;
const GENERATION = 7;
const CREATION_TIMESTAMP = 8;
const LABELS = 11;
const ANNOTATIONS = 12;
/** `name`, `generateName`, `namespace`, `selfLink`, `uid`, `resourceVersion`. */
const TEXTS = [1, 2, 3, 4, 5, 6];

const EMPTY = new Uint8Array(0);

const texts = z.optional(z.nullable(z.record(z.string(), z.string())));
const text = z.optional(z.nullable(z.string()));

/** Of metadata in JSON. Other fields are passed over. */
export const metadataShape = z.looseObject({
  name: text,
  namespace: text,
  uid: text,
  creationTimestamp: text,
  labels: texts,
  annotations: texts,
});

/** @throws ExchangeError `Malformed` for a time that is none. */
export function metadataFromJson(metadata: z.infer<typeof metadataShape>): ObjectMetadata {
  const { name, namespace, uid, creationTimestamp, labels, annotations } = metadata;
  const created = creationTimestamp ? timestampText(Date.parse(creationTimestamp) / 1000) : undefined;
  return withoutEmpty({ name, namespace, uid, creationTimestamp: created, labels, annotations });
}

/** @throws ExchangeError `Malformed`. */
export function metadataFromProtobuf(bytes: Uint8Array): ObjectMetadata {
  const fields = readFields(bytes);
  const time = bytesIn(fields, CREATION_TIMESTAMP);
  return withoutEmpty({
    name: textIn(fields, NAME),
    namespace: textIn(fields, NAMESPACE),
    uid: textIn(fields, UID),
    creationTimestamp: time.length === 0 ? undefined : timestampText(Number(integerIn(readFields(time), 1))),
    labels: textsIn(fields, LABELS),
    annotations: textsIn(fields, ANNOTATIONS),
  });
}

/** As Go writes it: every field that is no pointer, also when it is empty. */
export function metadataToProtobuf(metadata: ObjectMetadata): Uint8Array {
  const { name = '', namespace = '', uid = '', creationTimestamp, labels = {}, annotations = {} } = metadata;
  const written: Readonly<Record<number, string>> = { [NAME]: name, [NAMESPACE]: namespace, [UID]: uid };
  return joined(
    ...TEXTS.map((number) => bytesField(number, written[number] ?? '')),
    integerField(GENERATION, 0n),
    bytesField(CREATION_TIMESTAMP, creationTimestamp === undefined ? EMPTY : timestampBytes(creationTimestamp)),
    ...textsFields(LABELS, labels),
    ...textsFields(ANNOTATIONS, annotations),
  );
}

function timestampBytes(timestamp: string): Uint8Array {
  return joined(integerField(1, BigInt(Date.parse(timestamp) / 1000)), integerField(2, 0n));
}

function timestampText(seconds: number): string {
  const time = new Date(Math.floor(seconds) * 1000);
  if (Number.isNaN(time.getTime())) throw malformed('its metadata.creationTimestamp is no time');
  return time.toISOString().replace('.000Z', 'Z');
}

function textsIn(fields: readonly WireField[], number: number): Record<string, string> {
  const entries = fields.filter((field) => field.number === number);
  return Object.fromEntries(
    entries.map((field) => {
      const entry = readFields(bytesIn([field], number));
      return [textIn(entry, 1), textIn(entry, 2)];
    }),
  );
}

function textsFields(number: number, content: Readonly<Record<string, string>>): Uint8Array[] {
  const entries = Object.entries(content).sort(([one], [other]) => (one < other ? -1 : 1));
  return entries.map(([key, value]) => bytesField(number, joined(bytesField(1, key), bytesField(2, value))));
}

type Found<Fields> = { readonly [Field in keyof Fields]: Fields[Field] | null | undefined };

function withoutEmpty(metadata: Found<Required<ObjectMetadata>>): ObjectMetadata {
  const { name, namespace, uid, creationTimestamp, labels, annotations } = metadata;
  return {
    ...(name && { name }),
    ...(namespace && { namespace }),
    ...(uid && { uid }),
    ...(creationTimestamp && { creationTimestamp }),
    ...(labels && Object.keys(labels).length > 0 && { labels }),
    ...(annotations && Object.keys(annotations).length > 0 && { annotations }),
  };
}
