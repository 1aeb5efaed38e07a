import { HOLD_OWNER_LABEL } from '../cluster/hold.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { isRecord, type JsonRecord } from '../cluster/values.ts';
import { BACKSLASH, closes, LARGEST_OBJECT_BYTES, OverBound, opens, parseBoundedJson, QUOTE } from './reply-bounds.ts';
import {
  type ListMeta,
  LONGEST_CLAIM_TEXT,
  MOST_CLUSTER_IPS,
  MOST_PORTS,
  type ServiceListReader,
} from './service-list-reader.ts';

/** The JSON is not what a list of Services looks like. */
export class MalformedServiceList extends Error {
  override readonly name = 'MalformedServiceList';
}

function wrong(where: string, expected: string): MalformedServiceList {
  return new MalformedServiceList(`${where} is no ${expected}`);
}

function record(value: unknown, where: string): JsonRecord {
  if (value === undefined || value === null) {
    return {};
  }
  if (!isRecord(value)) throw wrong(where, 'object');
  return value;
}

function list(value: unknown, where: string, most: number): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw wrong(where, 'list');
  if (value.length > most) {
    throw new OverBound(`a Service with more than ${most} of ${where}`);
  }
  return value;
}

function text(value: unknown, where: string): string {
  if (value !== undefined && typeof value !== 'string') throw wrong(where, 'text');
  if (value !== undefined && value.length > LONGEST_CLAIM_TEXT) {
    throw new OverBound(`a Service with a ${where} of more than ${LONGEST_CLAIM_TEXT} characters`);
  }
  return value ?? '';
}

function whole(value: unknown, where: string): number {
  if (value === undefined) return 0;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw wrong(where, 'whole number');
  return value;
}

/** A field of the wrong type is an error, never a default: an address that is not read would pass for a free one. */
function claimOf(item: unknown): ServiceClaim {
  const service = record(item, 'an item');
  const metadata = record(service['metadata'], 'metadata');
  const spec = record(service['spec'], 'spec');
  const holdOwner = record(metadata['labels'], 'metadata.labels')[HOLD_OWNER_LABEL];
  return {
    name: text(metadata['name'], 'metadata.name'),
    namespace: text(metadata['namespace'], 'metadata.namespace'),
    uid: text(metadata['uid'], 'metadata.uid'),
    resourceVersion: text(metadata['resourceVersion'], 'metadata.resourceVersion'),
    type: text(spec['type'], 'spec.type'),
    clusterIP: text(spec['clusterIP'], 'spec.clusterIP'),
    clusterIPs: list(spec['clusterIPs'], 'spec.clusterIPs', MOST_CLUSTER_IPS).map((ip) => text(ip, 'a clusterIP')),
    ports: list(spec['ports'], 'spec.ports', MOST_PORTS).map((port) => {
      const fields = record(port, 'a port');
      return { protocol: text(fields['protocol'], 'protocol'), nodePort: whole(fields['nodePort'], 'nodePort') };
    }),
    healthCheckNodePort: whole(spec['healthCheckNodePort'], 'spec.healthCheckNodePort'),
    ...(holdOwner !== undefined && { holdOwner: text(holdOwner, `the label ${HOLD_OWNER_LABEL}`) }),
  };
}

/** A list of Services in JSON, which a server sends that has no protobuf. */
export class JsonServiceList implements ServiceListReader {
  readonly #items = new JsonItems();

  push(chunk: Uint8Array): ServiceClaim[] {
    return this.#items.push(chunk).map((item) => claimOf(parseBoundedJson(item)));
  }

  end(): ListMeta {
    const body = this.#items.end();
    if (!isRecord(body) || body['kind'] !== 'ServiceList' || body['apiVersion'] !== 'v1') {
      throw new MalformedServiceList('it is no v1 ServiceList, or not all of it');
    }
    const metadata = record(body['metadata'], 'metadata');
    return {
      resourceVersion: text(metadata['resourceVersion'], 'metadata.resourceVersion'),
      continueToken: text(metadata['continue'], 'metadata.continue'),
    };
  }
}

const OPEN_LIST = 0x5b;
/** `{"items":[` is this deep. */
const LIST_DEPTH = 2;
/** Stands for an item in what is kept of the list around the items. */
const PLACEHOLDER = '0';

/**
 * Cuts the items out of a JSON list while it arrives: each is passed on when it is complete, and is not kept. What
 * surrounds them is parsed at the end, with a number in the place of each item, so that it must be JSON as well.
 */
class JsonItems {
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
