import * as z from 'zod/mini';
import { BOUNDS } from '../cluster/bounds.ts';
import type { AnsweredCall } from './api-calls.ts';
import { type Kind, RESOURCES } from './cluster-port.ts';
import { MalformedProtobuf, type ProtobufReader } from './protobuf.ts';
import { ProtobufList } from './protobuf-list.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, tooLarge } from './replies.ts';
import { LONGEST_CLAIM_TEXT, OverBound } from './reply-bounds.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const MOST_ENTRIES = BOUNDS['each list']['Service.spec.ports and clusterIPs'];
const LARGEST_LIST_BYTES = 64 * 1024 * 1024;

/** Reads the objects of one kind, in both forms of the API. */
export interface ItemReader<Item> {
  readonly kind: Kind;
  readonly fromProtobuf: (reader: ProtobufReader) => Item;
  /** Throws `MalformedItem` or `OverBound`. */
  readonly fromJson: (object: unknown) => Item;
  /** Counts the ports and cluster IPs of a Service. */
  readonly entriesOf?: (item: Item) => number;
}

/**
 * Iterates over all objects of one kind in one list without a limit: protobuf is read while it arrives; JSON, of a
 * server without protobuf, is read whole. The request has no resourceVersion: an answer from a stale cache could omit
 * an existing object.
 * @param list GET with the given Accept header
 */
export async function* streamedList<Item extends { readonly name: string; readonly namespace?: string }>(
  list: (accept: string) => Promise<AnsweredCall>,
  site: CallSite,
  { kind, fromProtobuf, fromJson, entriesOf = () => 0 }: ItemReader<Item>,
): AsyncGenerator<Item> {
  let reply = await list(PROTOBUF_OR_JSON);
  if (reply.status === 406) reply = await list(JSON_ONLY);
  try {
    const reader = new ProtobufList(`${RESOURCES[kind].apiVersion} ${kind}List`, fromProtobuf);
    const items = reply.stream ? itemsIn(reply.stream, site, reader, kind) : listIn(reply, kind, site).map(fromJson);
    let entries = 0;
    for await (const item of items) {
      entries += entriesOf(item);
      if (entries > MOST_ENTRIES) throw new OverBound(`more than ${MOST_ENTRIES} ports and cluster IPs of Services`);
      if (item.name === '' || item.namespace === '') throw malformed(site, `a ${kind} without a name or a namespace`);
      yield item;
    }
  } catch (error) {
    if (error instanceof OverBound) throw tooLarge(site, error);
    const known = error instanceof MalformedProtobuf || error instanceof MalformedItem;
    throw known ? malformed(site, error.message, error) : error;
  }
}

async function* itemsIn<Item>(
  stream: AsyncIterable<Uint8Array>,
  site: CallSite,
  reader: ProtobufList<Item>,
  kind: Kind,
): AsyncGenerator<Item> {
  const most = BOUNDS['each list'][kind];
  let bytes = 0;
  let count = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > LARGEST_LIST_BYTES) throw new OverBound(`more than ${LARGEST_LIST_BYTES / 1024 / 1024} MiB`);
    for (const item of reader.push(chunk)) {
      count += 1;
      if (count > most) throw new OverBound(`more than ${most} objects of kind ${kind}`);
      yield item;
    }
  }
  const { resourceVersion, continueToken } = reader.end();
  if (resourceVersion === '') throw malformed(site, NO_VERSION);
  if (continueToken !== '') throw malformed(site, PART_OF_A_LIST);
}

/** An object of a list breaks the API contract. */
class MalformedItem extends Error {
  override readonly name = 'MalformedItem';
}

/** Accepts an absent or null field as empty. */
export function orEmpty<Shape extends z.core.$ZodType>(shape: Shape, empty: unknown) {
  return z.pipe(
    z.transform((value: unknown) => value ?? empty),
    shape,
  );
}

export const claimText = orEmpty(z.string().check(z.maxLength(LONGEST_CLAIM_TEXT)), '');

/** A time such as `2026-01-02T03:04:05Z` in milliseconds; 0 if absent. */
const creationMs = z.pipe(
  claimText,
  z.transform((text: string) => Date.parse(text) || 0),
);

export function metadataShape<Labels extends z.core.$ZodShape>(labels: Labels) {
  return z.object({
    name: claimText,
    namespace: claimText,
    uid: claimText,
    resourceVersion: claimText,
    creationTimestamp: creationMs,
    labels: orEmpty(z.object(labels), {}),
  });
}

/**
 * Reads an object from JSON. Throws `MalformedItem` and `OverBound`. A field of the wrong type is an error, never a default:
 * an address that is not read would pass for a free one.
 */
export function readJsonItem<Shape extends z.ZodMiniType>(shape: Shape, kind: Kind, object: unknown): z.infer<Shape> {
  const { data, error } = shape.safeParse(object);
  if (error === undefined) return data;
  const [issue] = error.issues;
  const place = issue?.path.join('.');
  if (issue?.code === 'too_big')
    throw new OverBound(`a ${kind} with more than ${issue.maximum} entries or characters in ${place}`);
  throw new MalformedItem(`${place} of a ${kind} has the wrong type`);
}
