import { BACKSLASH, closes, LARGEST_OBJECT_BYTES, OverBound, opens, parseBoundedJson, QUOTE } from './reply-bounds.ts';

const OPEN_LIST = 0x5b;
/** `{"items":[` is this deep. */
const LIST_DEPTH = 2;
/** Stands for an item in what is kept of the list around the items. */
const PLACEHOLDER = '0';

/**
 * Cuts the items out of a JSON list while it arrives: each is passed on when it is complete, and is not kept. What
 * surrounds them is parsed at the end, with a number in the place of each item, so that it must be JSON as well.
 */
export class JsonItems {
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** What is open at the depth of the list is one. */
  #inList = false;
  #inItem = false;
  #cut = 0;
  #item: Buffer[] = [];
  #itemBytes = 0;
  #around: Buffer[] = [];
  #aroundBytes = 0;

  /** The items that end in this chunk. Throws `OverBound`. */
  push(chunk: Uint8Array): Uint8Array[] {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const items: Uint8Array[] = [];
    let around = '';
    let from = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const step = this.#step(bytes[at] ?? 0);
      if (step === 'begins') {
        around += bytes.toString('latin1', from, at);
        from = at;
      } else if (step === 'ends') {
        items.push(this.#take(bytes.subarray(from, at + 1)));
        around += PLACEHOLDER;
        from = at + 1;
      }
    }
    if (this.#inItem) this.#keepItem(bytes.subarray(from));
    else around += bytes.toString('latin1', from);
    this.#keepAround(around);
    return items;
  }

  /** The list without its items; `undefined` when it is no JSON list, or not all of one. */
  end(): unknown {
    const list = parseBoundedJson(Buffer.concat(this.#around));
    const places: unknown = typeof list === 'object' && list !== null && 'items' in list ? list.items : undefined;
    const isWhole = Array.isArray(places) && places.length === this.#cut && places.every((place) => place === 0);
    return isWhole ? list : undefined;
  }

  #step(byte: number): 'begins' | 'ends' | undefined {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) this.#escaped = true;
      else this.#inText = byte !== QUOTE;
      return undefined;
    }
    if (byte === QUOTE) this.#inText = true;
    else if (opens(byte)) return this.#open(byte);
    else if (closes(byte)) return this.#close();
    return undefined;
  }

  #open(byte: number): 'begins' | undefined {
    this.#depth += 1;
    if (this.#depth === LIST_DEPTH) this.#inList = byte === OPEN_LIST;
    if (this.#depth !== LIST_DEPTH + 1 || !this.#inList) return undefined;
    this.#inItem = true;
    return 'begins';
  }

  #close(): 'ends' | undefined {
    this.#depth -= 1;
    if (this.#depth !== LIST_DEPTH || !this.#inItem) return undefined;
    this.#inItem = false;
    this.#cut += 1;
    return 'ends';
  }

  #keepItem(bytes: Buffer): void {
    this.#itemBytes += bytes.length;
    if (this.#itemBytes > LARGEST_OBJECT_BYTES) throw new OverBound('an item of more than 2 MiB');
    this.#item.push(Buffer.from(bytes));
  }

  #take(end: Buffer): Uint8Array {
    this.#keepItem(end);
    const item = this.#item.length === 1 ? end : Buffer.concat(this.#item);
    this.#item = [];
    this.#itemBytes = 0;
    return item;
  }

  #keepAround(around: string): void {
    this.#aroundBytes += around.length;
    if (this.#aroundBytes > LARGEST_OBJECT_BYTES) throw new OverBound('more than 2 MiB around its items');
    this.#around.push(Buffer.from(around, 'latin1'));
  }
}
