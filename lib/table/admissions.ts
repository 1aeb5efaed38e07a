import { createHash } from 'node:crypto';
import { guaranteedUpdate, type UpdateOptions } from './guaranteed-update.ts';
import { fieldsOf } from './item-fields.ts';
import type { Item, KeyValueTable, NewItem } from './key-value-table.ts';

/** Addresses and ports that a Service was given by admission. */
export interface GivenItems {
  /** Canonical. */
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

/** For whom: a Service by its name, or one whose name is yet to be made, by what it was given first. */
export type GivenTo =
  | { readonly namespace: string; readonly name: string }
  | { readonly namespace: string; readonly generateName: string; readonly first: string | number };

export const NO_ITEMS: GivenItems = { addresses: [], ports: [] };

const SCHEMA = 1;
/**
 * Longer than a request to an API server lives, and shorter than a leak does: what is given is freed after three strikes
 * at the earliest, the last of them four minutes after the first. Until then nobody else can have been given it.
 */
const LATELY_MS = 2 * 60 * 1000;

/** What was taken at one time. */
interface Given extends GivenItems {
  readonly untilMs: number;
}

/** `admissions/<id>`: what a Service was given in the last two minutes. @throws TableError `SchemaTooNew`, `Corrupt`. */
export async function givenLately(
  table: KeyValueTable,
  cluster: string,
  to: GivenTo,
  nowMs: number,
): Promise<GivenItems> {
  const given = givenIn(await table.get(cluster, keyOf(to)), nowMs);
  return {
    addresses: given.flatMap(({ addresses }) => addresses),
    ports: given.flatMap(({ ports }) => ports),
  };
}

/** Adds to it what was taken for this Service now. @throws TableError */
export async function recordGiven(
  table: KeyValueTable,
  cluster: string,
  to: GivenTo,
  { addresses, ports }: GivenItems,
  nowMs: number,
  options?: UpdateOptions,
): Promise<void> {
  const untilMs = nowMs + LATELY_MS;
  const change = (current: Item | undefined) => {
    return {
      write: contentOf([...givenIn(current, nowMs), { addresses, ports, untilMs }], untilMs),
      result: undefined,
    };
  };
  await guaranteedUpdate(table, cluster, keyOf(to), change, options);
}

/**
 * After `recordGiven` failed: whether nobody was told of these items by the record, nor will be. What is recorded stays
 * so, as another review of this Service may have read it. @throws TableError when nobody can tell.
 */
export async function isUnrecorded(
  table: KeyValueTable,
  cluster: string,
  to: GivenTo,
  { addresses, ports }: GivenItems,
  nowMs: number,
  options?: UpdateOptions,
): Promise<boolean> {
  const untilMs = nowMs + LATELY_MS;
  const isAmong = (given: Given) =>
    given.addresses.some((address) => addresses.includes(address)) || given.ports.some((port) => ports.includes(port));
  const change = (current: Item | undefined) => {
    const given = givenIn(current, nowMs);
    if (given.some(isAmong)) return { keep: false };
    // A write that is under way yet is conditional on what was there before this one.
    return { write: contentOf([...given, { ...NO_ITEMS, untilMs }], untilMs), result: true };
  };
  return guaranteedUpdate(table, cluster, keyOf(to), change, options);
}

function contentOf(given: readonly Given[], expiresAtMs: number): Omit<NewItem, 'cluster' | 'key'> {
  const texts = given.map((each) => ({ ...each, ports: each.ports.map(String) }));
  return { schema: SCHEMA, value: { given: texts }, expiresAtMs };
}

function givenIn(item: Item | undefined, nowMs: number): readonly Given[] {
  if (item === undefined) return [];
  return fieldsOf(item, SCHEMA)
    .list('given')
    .map((fields) => ({
      addresses: fields.texts('addresses', 0),
      ports: fields.texts('ports', 0).map(Number),
      untilMs: fields.number('untilMs'),
    }))
    .filter(({ untilMs }) => untilMs > nowMs);
}

/** Names of Services may be longer than a key is meant to be, and are nobody's business here. */
function keyOf(to: GivenTo): string {
  const id = 'name' in to ? [to.namespace, to.name] : [to.namespace, to.generateName, to.first];
  return `admissions/${createHash('sha256').update(JSON.stringify(id)).digest('base64url')}`;
}
