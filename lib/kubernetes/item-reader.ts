import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { LONGEST_TEXT } from '../util/bounds.ts';
import { isRecord, type JsonRecord } from '../util/values.ts';
import type { ClusterPort, Kind } from './cluster-port.ts';
import type { ProtobufReader } from './protobuf.ts';
import { OverBound } from './reply-bounds.ts';

/**
 * Reads the objects of one kind. Reads only the fields of an `Item`, and limits only their size. Skips other fields of
 * any size. A value of the wrong type is an error and is not replaced by a default, because an address that is not read
 * would count as free.
 */
export interface ItemReader<Item> {
  readonly kind: Kind;
  /**
   * Reads the message of one object. Throws `MalformedProtobuf` or `OverBound`.
   * @param previous the previous item of the list, whose texts are reused where they are equal
   */
  readonly fromProtobuf: (reader: ProtobufReader, previous: Item | undefined) => Item;
  /** Throws `MalformedItem` or `OverBound`. */
  readonly fromJson: (object: unknown) => Item;
  /** Counts the node ports and cluster IPs of a Service. */
  readonly entriesOf?: (item: Item) => number;
}

export class MalformedItem extends Error {
  override readonly name = 'MalformedItem';
}

export type Changing<Value> = { -readonly [Field in keyof Value]: Value[Field] };

export function metadataIn(metadata: JsonRecord) {
  return {
    name: textIn(metadata, 'name'),
    uid: textIn(metadata, 'uid'),
    resourceVersion: textIn(metadata, 'resourceVersion'),
    createdAtMs: Date.parse(textIn(metadata, 'creationTimestamp')) || 0,
  };
}

/** Returns the text in a field of JSON. An absent field is an empty text. */
export function textIn(record: JsonRecord, field: string): string {
  return textOf(record[field] ?? '', field);
}

export function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw wrongType(field);
  if (value.length > LONGEST_TEXT) throw new OverBound(`more than ${LONGEST_TEXT} characters in ${field}`);
  return value;
}

export function int32In(record: JsonRecord, field: string): number {
  const value = record[field] ?? 0;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw wrongType(field);
  return value;
}

export function recordIn(record: JsonRecord, field: string): JsonRecord {
  return asRecord(record[field] ?? {}, field);
}

export function asRecord(value: unknown, field: string): JsonRecord {
  if (!isRecord(value)) throw wrongType(field);
  return value;
}

export function listIn(record: JsonRecord, field: string, most = Number.POSITIVE_INFINITY): readonly unknown[] {
  const value = record[field] ?? [];
  if (!Array.isArray(value)) throw wrongType(field);
  if (value.length > most) throw tooManyEntries(most, field);
  return value;
}

export function tooManyEntries(most: number, field: string): OverBound {
  return new OverBound(`more than ${most} entries in ${field}`);
}

export function wrongType(field: string): MalformedItem {
  return new MalformedItem(`${field} has the wrong type`);
}

/** Returns every Service of the cluster, for commands. A pass reads the Services batch by batch instead. */
export async function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  return (await Array.fromAsync(port.services())).flat();
}
