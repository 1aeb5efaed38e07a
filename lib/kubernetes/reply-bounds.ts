import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import type { EndpointsObject } from '../cluster/published-objects.ts';
import { repackedAddresses } from '../cluster/repack-subsets.ts';
import { BOUNDS, fieldOver, LONGEST_TEXT, longTextIn, type OverBoundField } from '../util/bounds.ts';
import { exceededBound } from '../util/json-bounds.ts';
import { jsonIn } from '../util/values.ts';
import type { Kind } from './cluster-port.ts';

/** An input is larger than accepted. The message completes a sentence that begins with "it has". */
export class OverBound extends Error {
  override readonly name = 'OverBound';
}

/** The limit for one object. It is larger than any object that the loops read, because etcd stores at most 1.5 MiB. */
export const LARGEST_OBJECT_BYTES = 2 * 1024 * 1024;
/** The limit for a JSON list, the size of about 4,000 Services. After parsing, the list needs many times as much memory. */
export const LARGEST_JSON_LIST_BYTES = 8 * 1024 * 1024;
const DEEPEST_JSON = 64;
const MOST_JSON_VALUES = 250_000;
/** The limit for all unfinished replies together: half of the memory that a small function has besides its code. */
const IN_FLIGHT_BYTES = 32 * 1024 * 1024;

/** Counts the bytes of unfinished replies. Above the limit, only servers with less than an equal share may add bytes. */
export class BytesInFlight {
  readonly #limit: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(limit = IN_FLIGHT_BYTES) {
    this.#limit = limit;
  }

  /** Counts bytes of a server. Throws `OverBound` if the total would exceed the limit and the server would exceed its share. */
  add(server: string, bytes: number): void {
    const held = (this.#held.get(server) ?? 0) + bytes;
    const servers = this.#held.size + (this.#held.has(server) ? 0 : 1);
    if (this.#total + bytes > this.#limit && held > this.#limit / servers) {
      throw new OverBound('more bytes than this process has room for while other replies arrive');
    }
    this.#held.set(server, held);
    this.#total += bytes;
  }

  remove(server: string, bytes: number): void {
    const held = (this.#held.get(server) ?? 0) - bytes;
    if (held > 0) this.#held.set(server, held);
    else this.#held.delete(server);
    this.#total -= bytes;
  }
}

/** The body of a reply, which is still arriving. The caller must read it to its end, or end the iteration. */
export type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Pieces with fewer bytes are joined, because each buffer takes hundreds of bytes in addition to its content. */
const SMALL_PIECE_BYTES = 4 * 1024;

/** Joins the small pieces of a body. Otherwise a server that sends single bytes would fill the memory with buffers. */
export async function* inLargePieces(body: Body): AsyncGenerator<Uint8Array> {
  let held: Uint8Array = new Uint8Array();
  try {
    for await (const chunk of body) {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      if (held.length >= SMALL_PIECE_BYTES) {
        yield held;
        held = new Uint8Array();
      }
    }
  } catch (error) {
    if (held.length > 0) yield held;
    throw error;
  }
  if (held.length > 0) yield held;
}

/** Passes a body on. Throws `OverBound` if it has too many bytes. */
export async function* bounded(body: AsyncIterable<Uint8Array>, largestBytes: number, what = '') {
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > largestBytes) throw new OverBound(`more than ${largestBytes / 1024 / 1024} MiB${what}`);
    yield piece;
  }
}

/** Reads a body to its end. Throws the body's own errors, and `OverBound` for too many bytes. */
export async function readWhole(
  body: Body,
  server: string,
  inFlight: BytesInFlight,
  largestBytes = LARGEST_OBJECT_BYTES,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      if (length + chunk.length > largestBytes) throw new OverBound(`more than ${largestBytes / 1024 / 1024} MiB`);
      inFlight.add(server, chunk.length);
      length += chunk.length;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    inFlight.remove(server, length);
  }
}

/** Parses JSON; returns `undefined` for any other text. Throws `OverBound` if the JSON has too many levels or values. */
export function parseBoundedJson(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  const exceeded = exceededBound(text, { levels: DEEPEST_JSON, values: MOST_JSON_VALUES });
  if (exceeded === 'levels') throw new OverBound(`JSON that is nested deeper than ${DEEPEST_JSON}`);
  if (exceeded === 'values') throw new OverBound(`JSON of more than ${MOST_JSON_VALUES} values`);
  return jsonIn(text);
}

/** Throws `OverBound` for an object that is too large for a pass. Checks only Endpoints, EndpointSlices and ServiceCIDRs. */
export function requireObjectBounds(kind: Kind, object: KubernetesObject): void {
  if (kind !== 'Endpoints' && kind !== 'EndpointSlice' && kind !== 'ServiceCIDR') return;
  refuse(kind, fieldOver(object, BOUNDS[kind]));
  if (kind === 'Endpoints') refuse(`${kind}, repacked,`, repackedOver(object));
  const place = longTextIn(object);
  if (place !== undefined) throw new OverBound(`more than ${LONGEST_TEXT} characters in ${place} of ${kind}`);
}

export function requireListBounds(kind: Kind, items: readonly unknown[]): void {
  const most = BOUNDS['each list'][kind];
  if (items.length > most) refuse(`a list of ${kind}`, { field: 'items', entries: items.length, most });
}

function repackedOver({ subsets }: EndpointsObject): OverBoundField | undefined {
  const field = 'subsets[].addresses';
  const most = BOUNDS['Endpoints, repacked'][field];
  const entries = repackedAddresses(subsets ?? []);
  return entries > most ? { field, entries, most } : undefined;
}

function refuse(what: string, over: OverBoundField | undefined): void {
  if (over === undefined) return;
  const { field, entries, most } = over;
  throw new OverBound(`${entries} entries in ${field} of ${what} (the limit is ${most})`);
}
