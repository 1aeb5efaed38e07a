import { BOUNDS } from '../util/bounds.ts';
import { boundedText } from '../util/values.ts';
import type { AnsweredCall } from './api-calls.ts';
import { type Kind, RESOURCES } from './cluster-port.ts';
import type { ItemReader } from './item-reader.ts';
import { BYTES, type FieldPlace, fieldAt, MAGIC, MalformedProtobuf, ProtobufReader } from './protobuf.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, tooLarge } from './replies.ts';
import { LARGEST_OBJECT_BYTES, OverBound } from './reply-bounds.ts';
import { readType } from './status.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const MOST_ENTRIES = BOUNDS['each list']['node ports and cluster IPs of Services'];
const LARGEST_LIST_BYTES = 64 * 1024 * 1024;

/**
 * Requests a single list without a limit, and iterates over all objects of one kind in batches. Protobuf is read while
 * it arrives. JSON, from a server without protobuf, is read as a whole. The request has no resourceVersion, because an
 * answer from a stale cache could omit an existing object.
 * @param list sends the GET request with the given Accept header
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
  const bytes = new ArrivingBytes(stream);
  try {
    const list = new ArrivingList(reader, await listStart(bytes, reader.kind));
    while (list.left > 0) {
      yield list.readArrived(bytes);
      if (list.left > 0) await bytes.more();
    }
    await bytes.rest();
    if (list.version === '') throw malformed(site, NO_VERSION);
    if (list.continueToken !== '') throw malformed(site, PART_OF_A_LIST);
  } finally {
    await bytes.close();
  }
}

/** Reads the envelope (`runtime.Unknown`) up to the list in it. Returns the length of the list in bytes. */
async function listStart(bytes: ArrivingBytes, kind: Kind): Promise<number> {
  const expected = `${RESOURCES[kind].apiVersion} ${kind}List`;
  (await bytes.take(MAGIC.length)).requireMagic();
  let type = ' ';
  let head = await bytes.head();
  for (; head.field !== RAW_FIELD || head.wireType !== BYTES; head = await bytes.head()) {
    const reader = await bytes.take(head.end);
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === TYPE_META_FIELD) type = readType(reader);
    }
  }
  if (type !== expected) throw new MalformedProtobuf(`it is no ${expected}, but ${boundedText(type)}`);
  await bytes.take(head.start);
  return head.end - head.start;
}

/** The fields of a list, which are read one after the other. */
class ArrivingList<Item> {
  /** The number of bytes that were not read yet. */
  left: number;
  version = '';
  continueToken = '';
  readonly #reader: ItemReader<Item>;
  #count = 0;
  #previous: Item | undefined;

  constructor(reader: ItemReader<Item>, length: number) {
    this.#reader = reader;
    this.left = length;
  }

  /** Returns the items whose bytes have arrived completely. */
  readArrived(bytes: ArrivingBytes): readonly Item[] {
    const items: Item[] = [];
    while (this.left > 0) {
      const head = bytes.arrivedHead();
      if (head !== undefined && head.end > this.left) {
        throw new MalformedProtobuf('a field goes beyond the end of its list');
      }
      const reader = head && bytes.arrived(head.end);
      if (head === undefined || reader === undefined) break;
      this.left -= head.end;
      const field = reader.next();
      if (field === LIST_META_FIELD) this.#readMeta(reader);
      else if (field === ITEM_FIELD) items.push(this.#itemIn(reader));
    }
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

/** The bytes of a list that have arrived. `head` and `take` wait for more if there are too few. */
class ArrivingBytes {
  readonly #chunks: AsyncIterator<Uint8Array>;
  /** One buffer for all pieces, because most garbage would come from buffers for single pieces. */
  #buffer: Buffer = Buffer.alloc(0);
  #bytes: Buffer = this.#buffer;
  /** The position of the first byte that was not taken yet. */
  #at = 0;
  #total = 0;

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Returns the position of the next field, relative to the first byte that was not taken yet. */
  async head(): Promise<FieldPlace> {
    for (;;) {
      const head = this.arrivedHead();
      if (head !== undefined) return head;
      await this.more();
    }
  }

  arrivedHead(): FieldPlace | undefined {
    return fieldAt(this.#bytes, this.#at);
  }

  /** Takes bytes, and returns a reader of them. */
  async take(count: number): Promise<ProtobufReader> {
    for (;;) {
      const taken = this.arrived(count);
      if (taken !== undefined) return taken;
      await this.#receive(count);
    }
  }

  arrived(count: number): ProtobufReader | undefined {
    if (count > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    const start = this.#at;
    if (this.#bytes.length < start + count) return undefined;
    this.#at += count;
    return new ProtobufReader(this.#bytes, start, this.#at);
  }

  /** Waits for the rest of the next field, or of its length. */
  more(): Promise<void> {
    return this.#receive(this.arrivedHead()?.end ?? this.#bytes.length - this.#at + 1);
  }

  /** Waits for the end of the reply. */
  async rest(): Promise<void> {
    while ((await this.#next()) !== undefined);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #receive(count: number): Promise<void> {
    while (this.#bytes.length - this.#at < count) {
      const piece = await this.#next();
      if (piece === undefined) throw new MalformedProtobuf('it is cut off');
      this.#append(piece);
    }
  }

  /** Moves the bytes that were not taken to the start of the buffer, and adds a piece behind them. */
  #append(piece: Uint8Array): void {
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

  async #next(): Promise<Uint8Array | undefined> {
    const { value, done } = await this.#chunks.next();
    if (done) return undefined;
    this.#total += value.length;
    if (this.#total > LARGEST_LIST_BYTES) {
      throw new OverBound(`more than ${LARGEST_LIST_BYTES / 1024 / 1024} MiB`);
    }
    return value;
  }
}
