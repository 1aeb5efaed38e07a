import type { Attributes } from './stand-in-table.ts';

/*
 * Decodes the items of the table with code of its own, because the product's decoder would hide its own errors.
 */

export const RANGE_KEYS = ['ranges/serviceips', 'ranges/secondaryserviceips', 'ranges/servicenodeports'] as const;

export interface StoredHold {
  readonly owner: string;
  readonly untilMs: number;
  readonly requestId: string;
}

export interface StoredRangeItem {
  readonly range: string;
  readonly generation: number;
  readonly taken: ReadonlySet<string>;
  readonly strikes: ReadonlyMap<string, 1 | 2>;
  readonly holds: ReadonlyMap<string, StoredHold>;
  /** The number of items that reviews gave to each namespace and that no pass has seen in a Service. */
  readonly unclaimed: ReadonlyMap<string, number>;
  /** The Services of these items, as namespace/name. */
  readonly unclaimedOf: ReadonlySet<string>;
}

const EMPTY: StoredRangeItem = {
  range: '',
  generation: 0,
  taken: new Set(),
  strikes: new Map(),
  holds: new Map(),
  unclaimed: new Map(),
  unclaimedOf: new Set(),
};

/** The decoded items. An item of the table is never changed, only replaced. */
const decoded = new WeakMap<Attributes, StoredRangeItem>();

export function storedRangeIn(attributes: Attributes | undefined): StoredRangeItem {
  const item = (attributes && decoded.get(attributes)) ?? rangeIn(attributes);
  if (attributes !== undefined) decoded.set(attributes, item);
  return item;
}

function rangeIn(attributes: Attributes | undefined): StoredRangeItem {
  const fields = attributes?.['value']?.M;
  const range = fields?.['range']?.S;
  if (fields === undefined || range === undefined) return EMPTY;
  const itemsIn = (bits: Uint8Array | undefined) => numbersIn(bits).map((number) => itemAt(range, number));
  const strikes = fields['strikes']?.M;
  const once = itemsIn(strikes?.['once']?.B).map((item) => [item, 1] as const);
  const twice = itemsIn(strikes?.['twice']?.B).map((item) => [item, 2] as const);
  const holds = new Map<string, StoredHold>();
  for (const { M: hold } of fields['holds']?.L ?? []) {
    const untilMs = Number(hold?.['untilMs']?.N ?? Number.POSITIVE_INFINITY);
    const terms = { owner: hold?.['owner']?.S ?? '', untilMs, requestId: hold?.['requestId']?.S ?? '' };
    for (const { S: item = '' } of hold?.['items']?.L ?? []) holds.set(item, terms);
  }
  const given = Object.entries(fields['given']?.M ?? {}).map(([namespace, { S = '' }]) => [namespace, S] as const);
  return {
    range,
    generation: Number(fields['generation']?.N),
    taken: new Set(fields['allocator']?.S === 'table' ? itemsIn(fields['data']?.B) : []),
    strikes: new Map<string, 1 | 2>([...once, ...twice]),
    holds,
    unclaimed: new Map(given.map(([namespace, lines]) => [namespace, countIn(lines)])),
    unclaimedOf: new Set(given.flatMap(([namespace, lines]) => namesIn(lines).map((name) => `${namespace}/${name}`))),
  };
}

export function addressesWithLease(leases: Attributes | undefined): string[] {
  return Object.keys(leases?.['value']?.M ?? {});
}

/** Returns a time of the lease of an address, or its number of misses. */
export function leaseFieldIn(leases: Attributes | undefined, address: string, field: string): number {
  return Number(leases?.['value']?.M?.[address]?.M?.[field]?.N ?? 0);
}

/** Counts the items in the lists of all lines. A line has a name, a number of reviews and two comma-separated lists. */
function countIn(lines: string): number {
  const lists = lines.split('\n').flatMap((line) => line.split(' ').slice(2));
  return lists.reduce((sum, list) => sum + list.split(',').filter(Boolean).length, 0);
}

/** Returns the Services of the lines that have an item. */
function namesIn(lines: string): string[] {
  return lines.split('\n').flatMap((line) => (countIn(line) > 0 ? (line.split(' ')[0] ?? []) : []));
}

/** Returns the positions of the bits that are set in a big-endian number. */
function numbersIn(bytes: Uint8Array = new Uint8Array(0)): number[] {
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[bytes.length - 1 - at] ?? 0;
    for (let bit = 0; bit < 8; bit++) if ((byte >> bit) & 1) numbers.push(8 * at + bit);
  }
  return numbers;
}

/** Returns the item of a range at an index, of a range of addresses without its first one. */
export function itemAt(range: string, number: number): string {
  const [first = ''] = range.split(range.includes('/') ? '/' : '-');
  if (!range.includes('/')) return String(Number(first) + number);
  if (first.includes(':')) return `${first}${(number + 1).toString(16)}`;
  return `${first.replace(/\d+$/, '')}${Number(first.split('.').at(-1)) + number + 1}`;
}

/** Returns the key of the range to which an item belongs, by the form of the item. */
export function keyOf(item: string): string {
  if (item.includes(':')) return 'ranges/secondaryserviceips';
  return item.includes('.') ? 'ranges/serviceips' : 'ranges/servicenodeports';
}

/** Returns whether an item can be allocated from a range: not the network address, and not the broadcast address of IPv4. */
export function hasItem(range: string, item: string): boolean {
  const isAddress = /[.:]/.test(item);
  if (isAddress !== range.includes('/') || item.includes(':') !== range.includes(':')) return false;
  const [first = '', last = '0'] = range.split(isAddress ? '/' : '-');
  if (!isAddress) return Number(item) >= Number(first) && Number(item) <= Number(last);
  if (item.includes(':')) return item.startsWith(first) && item !== first;
  const number = (text: string) => text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - Number(last));
  const place = number(item) - number(first);
  return place > 0 && place < size - 1;
}

/** Returns the number of items in a range, without the network address, and without the broadcast address of IPv4. */
export function sizeOf(range: string): number {
  if (!range.includes('/')) {
    const [first = 0, last = 0] = range.split('-').map(Number);
    return last - first + 1;
  }
  const bits = Number(range.split('/')[1]);
  return range.includes(':') ? 2 ** (128 - bits) - 1 : 2 ** (32 - bits) - 2;
}
