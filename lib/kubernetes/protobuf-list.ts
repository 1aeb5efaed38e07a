import { boundedText } from '../cluster/values.ts';
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
import { LARGEST_OBJECT_BYTES, OverBound } from './reply-bounds.ts';

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
