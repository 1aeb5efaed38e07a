import { BOUNDS } from '../util/bounds.ts';
import { boundedText } from '../util/values.ts';
import type { AnsweredCall } from './api-calls.ts';
import { RESOURCES } from './cluster-port.ts';
import { type ItemReader, longText, MalformedItem, messageOf } from './item-readers.ts';
import {
  BYTES,
  type FieldPlace,
  firstField,
  MAGIC,
  MalformedProtobuf,
  ProtobufReader,
  requireMagic,
} from './protobuf.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, TYPE_META, tooLarge } from './replies.ts';
import { LARGEST_OBJECT_BYTES, OverBound } from './reply-bounds.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const MOST_ENTRIES = BOUNDS['each list']['Service.spec.ports and clusterIPs'];
const LARGEST_LIST_BYTES = 64 * 1024 * 1024;

/**
 * Iterates over all objects of one kind in a single list without a limit. Protobuf is read while it arrives. JSON, from a
 * server without protobuf, is read as a whole. The request has no resourceVersion, because an answer from a stale cache could
 * omit an existing object.
 * @param list sends the GET request with the given Accept header
 */
export async function* streamedList<Item extends { readonly name: string; readonly namespace?: string }>(
  list: (accept: string) => Promise<AnsweredCall>,
  reader: ItemReader<Item>,
): AsyncGenerator<Item> {
  const { kind, fromJson, entriesOf = () => 0 } = reader;
  let reply = await list(PROTOBUF_OR_JSON);
  if (reply.status === 406) reply = await list(JSON_ONLY);
  try {
    const items = reply.stream ? itemsIn(reply.stream, reply, reader) : listIn(reply, kind).map(fromJson);
    let entries = 0;
    for await (const item of items) {
      entries += entriesOf(item);
      if (entries > MOST_ENTRIES) throw new OverBound(`more than ${MOST_ENTRIES} ports and cluster IPs of Services`);
      if (item.name === '' || item.namespace === '') throw malformed(reply, `a ${kind} without a name or a namespace`);
      yield item;
    }
  } catch (error) {
    if (error instanceof OverBound) throw tooLarge(reply, error);
    const known = error instanceof MalformedProtobuf || error instanceof MalformedItem;
    throw known ? malformed(reply, error.message, error) : error;
  }
}

// Field numbers: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and k8s.io/apimachinery/pkg/runtime/generated.proto.

const TYPE_META_FIELD = 1;
const RAW_FIELD = 2;
const LIST_META_FIELD = 1;
const ITEM_FIELD = 2;
const LIST_META = messageOf({ resourceVersion: [2, longText], continue: [3, longText] });

/** Yields the items of a list while it arrives. Each field is parsed when all of its bytes have arrived. */
async function* itemsIn<Item>(
  stream: AsyncIterable<Uint8Array>,
  site: CallSite,
  { kind, fromProtobuf }: ItemReader<Item>,
): AsyncGenerator<Item> {
  const expected = `${RESOURCES[kind].apiVersion} ${kind}List`;
  const most = BOUNDS['each list'][kind];
  const bytes = new ArrivingBytes(stream);
  try {
    requireMagic(await bytes.take(MAGIC.length));
    let found = TYPE_META.empty;
    let head = await bytes.head();
    for (; head.field !== RAW_FIELD || head.wireType !== BYTES; head = await bytes.head()) {
      const reader = new ProtobufReader(await bytes.take(head.end));
      reader.fields((field) => {
        if (field === TYPE_META_FIELD) found = TYPE_META.fromProtobuf(reader, found, 'TypeMeta');
      });
    }
    const type = `${found.apiVersion} ${found.kind}`;
    if (type !== expected) throw new MalformedProtobuf(`it is no ${expected}, but ${boundedText(type)}`);
    await bytes.take(head.start);
    let meta = LIST_META.empty;
    let count = 0;
    for (let left = head.end - head.start; left > 0; ) {
      // Waits only if the object has not arrived yet, which is rare: an `await` for each object would take a fifth of the time of
      // a pass.
      const { end: size } = bytes.arrivedHead() ?? (await bytes.head());
      if (size > left) throw new MalformedProtobuf('a field goes beyond the end of its list');
      left -= size;
      const reader = new ProtobufReader(bytes.arrived(size) ?? (await bytes.take(size)));
      let item: Item | undefined;
      reader.fields((field) => {
        if (field === LIST_META_FIELD) meta = LIST_META.fromProtobuf(reader, meta, 'ListMeta');
        else if (field === ITEM_FIELD) item = fromProtobuf(reader);
      });
      if (item === undefined) continue;
      count += 1;
      if (count > most) throw new OverBound(`more than ${most} objects of kind ${kind}`);
      yield item;
    }
    await bytes.rest();
    if (meta.resourceVersion === '') throw malformed(site, NO_VERSION);
    if (meta.continue !== '') throw malformed(site, PART_OF_A_LIST);
  } finally {
    await bytes.close();
  }
}

/** The bytes of a list that have arrived. `head` and `take` wait for more if there are too few. */
class ArrivingBytes {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #bytes: Buffer = Buffer.alloc(0);
  #total = 0;

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Returns the position of the next field, relative to the first byte that was not taken yet. */
  async head(): Promise<FieldPlace> {
    for (;;) {
      const head = this.arrivedHead();
      if (head !== undefined) return head;
      await this.#receive(this.#bytes.length + 1);
    }
  }

  arrivedHead(): FieldPlace | undefined {
    return firstField(this.#bytes);
  }

  async take(count: number): Promise<Buffer> {
    for (;;) {
      const taken = this.arrived(count);
      if (taken !== undefined) return taken;
      await this.#receive(count);
    }
  }

  arrived(count: number): Buffer | undefined {
    if (count > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    if (this.#bytes.length < count) return undefined;
    const taken = this.#bytes.subarray(0, count);
    this.#bytes = this.#bytes.subarray(count);
    return taken;
  }

  /** Waits for the end of the reply. */
  async rest(): Promise<void> {
    while ((await this.#next()) !== undefined);
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  async #receive(count: number): Promise<void> {
    const pieces: Uint8Array[] = [this.#bytes];
    for (let length = this.#bytes.length; length < count; ) {
      const piece = await this.#next();
      if (piece === undefined) throw new MalformedProtobuf('it is cut off');
      pieces.push(piece);
      length += piece.length;
    }
    this.#bytes = Buffer.concat(pieces);
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
