import { BOUNDS } from '../util/bounds.ts';
import { boundedText } from '../util/values.ts';
import type { AnsweredCall } from './api-calls.ts';
import { RESOURCES } from './cluster-port.ts';
import type { ItemReader } from './item-reader.ts';
import { BYTES, type FieldPlace, fieldAt, MAGIC, MalformedProtobuf, ProtobufReader } from './protobuf.ts';
import { type CallSite, listIn, malformed, requireWholeList, tooLarge } from './replies.ts';
import { bounded, LARGEST_OBJECT_BYTES, OverBound } from './reply-bounds.ts';
import { readType } from './status.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const MOST_ENTRIES = BOUNDS['each list']['node ports and cluster IPs of Services'];
const LARGEST_LIST_BYTES = 64 * 1024 * 1024;

/**
 * Requests a single list without a limit, and iterates over its objects in batches. Protobuf is read while it arrives. A server
 * without protobuf sends JSON, which is read as a whole. No resourceVersion is sent: a stale cache could omit an existing object.
 */
export async function* streamedList<Item extends { readonly name: string; readonly namespace?: string }>(
  list: (accept: string) => Promise<AnsweredCall>,
  reader: ItemReader<Item>,
): AsyncGenerator<readonly Item[]> {
  const { kind, fromJson, entriesOf = () => 0 } = reader;
  let reply = await list(PROTOBUF_OR_JSON);
  if (reply.status === 406) reply = await list(JSON_ONLY);
  try {
    const batches = reply.stream ? batchesIn(reply.stream, reply, reader) : [listIn(reply, kind).map(fromJson)];
    let entries = 0;
    for await (const items of batches) {
      for (const item of items) entries += entriesOf(item);
      if (entries > MOST_ENTRIES)
        throw new OverBound(`more than ${MOST_ENTRIES} node ports and cluster IPs of Services`);
      if (items.some(({ name, namespace }) => name === '' || namespace === '')) {
        throw malformed(reply, `a ${kind} without a name or a namespace`);
      }
      yield items;
    }
  } catch (error) {
    throw faultOf(reply, error);
  }
}

function faultOf(site: CallSite, error: unknown): unknown {
  if (error instanceof OverBound) return tooLarge(site, error);
  return error instanceof MalformedProtobuf ? malformed(site, error.message, error) : error;
}

// Field numbers: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and k8s.io/apimachinery/pkg/runtime/generated.proto.

const TYPE_META_FIELD = 1;
const RAW_FIELD = 2;
const LIST_META_FIELD = 1;
const ITEM_FIELD = 2;

/** Yields the items of a list while the reply arrives: after each piece of the reply, the items that are complete. */
async function* batchesIn<Item>(
  stream: AsyncIterable<Uint8Array>,
  site: CallSite,
  reader: ItemReader<Item>,
): AsyncGenerator<readonly Item[]> {
  const list = new ArrivingList(reader);
  for await (const piece of bounded(stream, LARGEST_LIST_BYTES)) yield list.push(piece);
  if (list.left !== 0) throw new MalformedProtobuf('it is cut off');
  requireWholeList(site, list.version, list.continueToken);
}

/** A list that arrives in an envelope (`runtime.Unknown`). Reads the fields of the envelope and of the list in order. */
class ArrivingList<Item> {
  /** The number of bytes of the list that were not read yet; `undefined` before the list begins. */
  left: number | undefined;
  version = '';
  continueToken = '';
  readonly #reader: ItemReader<Item>;
  readonly #bytes = new ArrivingBytes();
  /** The API version and kind in the envelope; `undefined` until the magic bytes have been read. */
  #type: string | undefined;
  #count = 0;
  #previous: Item | undefined;

  constructor(reader: ItemReader<Item>) {
    this.#reader = reader;
  }

  /** Returns the items that are complete with this piece. Ignores the fields of the envelope after the list. */
  push(piece: Uint8Array): readonly Item[] {
    if (this.left === 0) return [];
    this.#bytes.append(piece);
    if (this.left === undefined) this.#readEnvelope();
    return this.left === undefined ? [] : this.#readList(this.left);
  }

  #readEnvelope(): void {
    if (this.#type === undefined) {
      const magic = this.#bytes.take(MAGIC.length);
      magic?.requireMagic();
      this.#type = magic && ' ';
    }
    while (this.#type !== undefined && this.left === undefined) {
      const head = this.#bytes.head();
      if (head === undefined) return;
      const isList = head.field === RAW_FIELD && head.wireType === BYTES;
      const reader = this.#bytes.take(isList ? head.start : head.end);
      if (reader === undefined) return;
      if (isList) this.#begin(head.end - head.start);
      else if (reader.next() === TYPE_META_FIELD) this.#type = readType(reader);
    }
  }

  #begin(length: number): void {
    const { kind } = this.#reader;
    const expected = `${RESOURCES[kind].apiVersion} ${kind}List`;
    if (this.#type !== expected) throw new MalformedProtobuf(`it is no ${expected}, but ${boundedText(this.#type)}`);
    this.left = length;
  }

  #readList(length: number): readonly Item[] {
    const items: Item[] = [];
    let left = length;
    while (left > 0) {
      const head = this.#bytes.head();
      if (head === undefined) break;
      if (head.end > left) throw new MalformedProtobuf('a field goes beyond the end of its list');
      const reader = this.#bytes.take(head.end);
      if (reader === undefined) break;
      left -= head.end;
      const field = reader.next();
      if (field === LIST_META_FIELD) this.#readMeta(reader);
      else if (field === ITEM_FIELD) items.push(this.#itemIn(reader));
    }
    this.left = left;
    return items;
  }

  #readMeta(reader: ProtobufReader): void {
    reader.enter();
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 2) this.version = reader.text();
      else if (field === 3) this.continueToken = reader.text();
    }
  }

  #itemIn(reader: ProtobufReader): Item {
    const { kind, fromProtobuf } = this.#reader;
    const most = BOUNDS['each list'][kind];
    this.#count += 1;
    if (this.#count > most) throw new OverBound(`more than ${most} objects of kind ${kind}`);
    this.#previous = fromProtobuf(reader, this.#previous);
    return this.#previous;
  }
}

class ArrivingBytes {
  /** The buffer of all pieces. A new buffer for each piece would cause most of the garbage. */
  #buffer: Buffer = Buffer.alloc(0);
  #bytes: Buffer = this.#buffer;
  #at = 0;

  /** Moves the bytes that were not taken to the start of the buffer, and adds a piece after them. */
  append(piece: Uint8Array): void {
    const left = this.#bytes.subarray(this.#at);
    const length = left.length + piece.length;
    if (length > this.#buffer.length) {
      this.#buffer = Buffer.allocUnsafe(2 * length);
      this.#buffer.set(left);
    } else if (this.#at > 0) this.#buffer.set(left);
    this.#buffer.set(piece, left.length);
    this.#bytes = this.#buffer.subarray(0, length);
    this.#at = 0;
  }

  /** Returns the place of the next field, relative to its first byte; `undefined` if its length has not arrived yet. */
  head(): FieldPlace | undefined {
    return fieldAt(this.#bytes, this.#at);
  }

  /** Takes bytes, and returns a reader of them; `undefined` if too few have arrived. */
  take(count: number): ProtobufReader | undefined {
    if (count > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    const start = this.#at;
    if (this.#bytes.length < start + count) return undefined;
    this.#at += count;
    return new ProtobufReader(this.#bytes, start, this.#at);
  }
}
