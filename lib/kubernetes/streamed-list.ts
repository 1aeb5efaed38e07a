import { BOUNDS } from '../cluster/bounds.ts';
import { boundedText } from '../cluster/values.ts';
import type { AnsweredCall } from './api-calls.ts';
import { type Kind, RESOURCES } from './cluster-port.ts';
import { type ItemReader, MalformedItem } from './item-readers.ts';
import {
  BYTES,
  type FieldPlace,
  fieldAt,
  MAGIC,
  MalformedProtobuf,
  ProtobufReader,
  readTypeMeta,
  requireMagic,
} from './protobuf.ts';
import { type CallSite, listIn, malformed, NO_VERSION, PART_OF_A_LIST, tooLarge } from './replies.ts';
import { LARGEST_OBJECT_BYTES, OverBound } from './reply-bounds.ts';

const PROTOBUF_OR_JSON = 'application/vnd.kubernetes.protobuf, application/json';
const JSON_ONLY = 'application/json';
const MOST_ENTRIES = BOUNDS['each list']['Service.spec.ports and clusterIPs'];
const LARGEST_LIST_BYTES = 64 * 1024 * 1024;

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

// Field numbers: k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto and k8s.io/apimachinery/pkg/runtime/generated.proto.

const TYPE_META = 1;
const RAW = 2;
const LIST_META = 1;
const ITEM = 2;

/**
 * The position of the reader: before the magic bytes, in the `runtime.Unknown`, in the list that is its `raw`, or after
 * that.
 */
type Place = 'start' | 'envelope' | 'list' | 'rest';

interface ListMeta {
  readonly resourceVersion: string;
  /** Empty when the list is complete. */
  readonly continueToken: string;
}

/**
 * Reads a list of objects while it arrives. Bytes are kept until a field of the list is whole, as an object is; fields of
 * other kinds are skipped. Each call throws `MalformedProtobuf` or `OverBound`.
 */
export class ProtobufList<Item> {
  /** `v1 ServiceList`. */
  readonly #expectedKind: string;
  readonly #readItem: (reader: ProtobufReader) => Item;
  #place: Place = 'start';
  #kind = '';
  /** The number of bytes of the list that are still missing. */
  #left = 0;
  #meta: ListMeta = { resourceVersion: '', continueToken: '' };
  #items: Item[] = [];
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** The number of bytes that the next step needs. */
  #needed = MAGIC.length;

  constructor(kind: string, readItem: (reader: ProtobufReader) => Item) {
    this.#expectedKind = kind;
    this.#readItem = readItem;
  }

  /** Returns the objects that end in this chunk. */
  push(chunk: Uint8Array): Item[] {
    if (this.#place === 'rest') return [];
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes < this.#needed) return [];

    const bytes = Buffer.concat(this.#waiting);
    let at = 0;
    for (let next = this.#step(bytes, at); next !== undefined; next = this.#step(bytes, at)) at = next;
    this.#waiting = [bytes.subarray(at)];
    this.#waitingBytes = bytes.length - at;
    const items = this.#items;
    this.#items = [];
    return items;
  }

  /** Returns the metadata of the list. Throws if the list is incomplete. */
  end(): ListMeta {
    if (this.#place === 'start') requireMagic(Buffer.concat(this.#waiting));
    if (this.#place !== 'rest' && this.#kind !== this.#expectedKind && this.#waitingBytes === 0)
      throw this.#otherKind();
    if (this.#place !== 'rest') throw new MalformedProtobuf('it is cut off');
    return this.#meta;
  }

  /** Returns the position of the next step, or `undefined` if more bytes are needed. */
  #step(bytes: Buffer, at: number): number | undefined {
    if (this.#place === 'rest') return undefined;
    if (this.#place !== 'start') return this.#field(bytes, at);
    if (bytes.length < MAGIC.length) return this.#wait(MAGIC.length);
    requireMagic(bytes);
    this.#place = 'envelope';
    return MAGIC.length;
  }

  #field(bytes: Buffer, at: number): number | undefined {
    const head = fieldAt(bytes, at);
    if (head === undefined) return this.#wait(bytes.length - at + 1);
    if (this.#place === 'envelope' && head.field === RAW && head.wireType === BYTES) return this.#enterList(head);
    const size = head.end - at;
    if (this.#place === 'list' && size > this.#left)
      throw new MalformedProtobuf('a field goes beyond the end of its list');
    if (size > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    if (head.end > bytes.length) return this.#wait(size);
    const reader = new ProtobufReader(bytes, at, head.end);
    reader.fields((field) => {
      if (this.#place === 'list') this.#readList(reader, field, size);
      else if (field === TYPE_META) this.#kind = readTypeMeta(reader);
    });
    return head.end;
  }

  #wait(bytes: number): undefined {
    this.#needed = bytes;
  }

  #enterList({ start, end }: FieldPlace): number {
    if (this.#kind !== this.#expectedKind) throw this.#otherKind();
    this.#left = end - start;
    this.#place = this.#left === 0 ? 'rest' : 'list';
    return start;
  }

  #readList(reader: ProtobufReader, field: number, size: number): void {
    if (field === LIST_META) this.#meta = readListMeta(reader);
    else if (field === ITEM) this.#items.push(this.#readItem(reader));
    this.#left -= size;
    if (this.#left === 0) this.#place = 'rest';
  }

  #otherKind(): MalformedProtobuf {
    const found = this.#kind === '' ? '' : `, but ${boundedText(this.#kind)}`;
    return new MalformedProtobuf(`it is no ${this.#expectedKind}${found}`);
  }
}

function readListMeta(reader: ProtobufReader): ListMeta {
  const meta = { resourceVersion: '', continueToken: '' };
  reader.message((field) => {
    if (field === 2) meta.resourceVersion = reader.text();
    else if (field === 3) meta.continueToken = reader.text();
  });
  return meta;
}
