import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  type IPAddressRecord,
  type ServiceClaim,
} from '../cluster/kubernetes-objects.ts';
import { LONGEST_TEXT } from '../util/bounds.ts';
import { isRecord } from '../util/values.ts';
import type { ClusterPort, Kind } from './cluster-port.ts';
import type { ProtobufReader } from './protobuf.ts';
import { OverBound } from './reply-bounds.ts';

export class MalformedItem extends Error {
  override readonly name = 'MalformedItem';
}

/**
 * Reads one value in both formats. A value of the wrong type is an error and gets no default, because an address that is not
 * read would count as free.
 */
interface ValueReader<Value> {
  /** The value of an absent field. */
  readonly empty: Value;
  /** @param before the value so far, because each entry of a list or map is a separate field with the same number */
  readonly fromProtobuf: (reader: ProtobufReader, before: Value, name: string) => Value;
  readonly fromJson: (json: unknown, name: string) => Value;
}

function wrongType(name: string): MalformedItem {
  return new MalformedItem(`${name} has the wrong type`);
}

/** Reads a text of at most `longest` bytes of protobuf, or characters of JSON. */
function textOf(longest: number): ValueReader<string> {
  return {
    empty: '',
    fromProtobuf: (reader) => reader.text(longest),
    fromJson: (json, name) => {
      if (typeof json !== 'string') throw wrongType(name);
      if (json.length > longest) throw new OverBound(`more than ${longest} characters in ${name}`);
      return json;
    },
  };
}

export const text = textOf(LONGEST_TEXT);
export const longText = textOf(Number.POSITIVE_INFINITY);

export const int32: ValueReader<number> = {
  empty: 0,
  fromProtobuf: (reader) => reader.int32(),
  fromJson: (json, name) => {
    if (typeof json !== 'number' || !Number.isSafeInteger(json)) throw wrongType(name);
    return json;
  },
};

/** Reads a time in milliseconds. Protobuf has whole seconds, until the year 2106. */
export const time: ValueReader<number> = {
  empty: 0,
  fromProtobuf: (reader) => {
    let seconds = 0;
    const outerEnd = reader.enter();
    for (let field = reader.next(); field !== 0; field = reader.next()) {
      if (field === 1) seconds = reader.int32() >>> 0;
      else reader.skip();
    }
    reader.leave(outerEnd);
    return seconds * 1000;
  },
  fromJson: (json, name) => Date.parse(text.fromJson(json, name)) || 0,
};

export function listOf<Item>(item: ValueReader<Item>, most = Number.POSITIVE_INFINITY): ValueReader<readonly Item[]> {
  const empty: readonly Item[] = [];
  const bounded = (items: readonly Item[], name: string) => {
    if (items.length > most) throw new OverBound(`more than ${most} entries in ${name}`);
    return items;
  };
  return {
    empty,
    fromProtobuf: (reader, before, name) => {
      const items = before === empty ? [] : (before as Item[]);
      items.push(item.fromProtobuf(reader, item.empty, name));
      return bounded(items, name);
    },
    fromJson: (json, name) => {
      if (!Array.isArray(json)) throw wrongType(name);
      return bounded(json, name).map((each) => item.fromJson(each, name));
    },
  };
}

/** Reads a value whose JSON has the wrong type as an empty value. Only for values that no allocation depends on. */
export function orEmpty<Value>(value: ValueReader<Value>): ValueReader<Value> {
  return {
    ...value,
    fromJson: (json, name) => {
      try {
        return value.fromJson(json, name);
      } catch (error) {
        if (error instanceof MalformedItem) return value.empty;
        throw error;
      }
    },
  };
}

/** Reads the values of these labels. */
export function labelsOf<Key extends string>(...keys: readonly Key[]): ValueReader<Partial<Record<Key, string>>> {
  const known = new Map<string, Key>(keys.map((key) => [key, key]));
  return {
    empty: {},
    fromProtobuf: (reader, before) => {
      let labels = before;
      let key: Key | undefined;
      const outerEnd = reader.enter();
      for (let field = reader.next(); field !== 0; field = reader.next()) {
        // The key of an entry comes before its value.
        if (field === 1) key = known.get(reader.text());
        else if (field === 2 && key !== undefined) labels = { ...labels, [key]: reader.text(LONGEST_TEXT) };
        else reader.skip();
      }
      reader.leave(outerEnd);
      return labels;
    },
    fromJson: (json, name) => {
      if (!isRecord(json)) throw wrongType(name);
      const given = keys.filter((key) => json[key] !== undefined && json[key] !== null);
      return Object.fromEntries(given.map((key) => [key, text.fromJson(json[key], key)])) as Partial<
        Record<Key, string>
      >;
    },
  };
}

/**
 * Reads an object.
 * @param fields for each name in JSON, the number of the field in protobuf, and its reader
 */
export function messageOf<Value extends object>(
  fields: {
    readonly [Name in keyof Value]: readonly [number, ValueReader<Value[Name]>];
  },
): ValueReader<Value> {
  const names = Object.keys(fields) as (keyof Value & string)[];
  const empty = Object.fromEntries(names.map((name) => [name, fields[name][1].empty])) as Value;
  const known: { readonly name: keyof Value; readonly read: ValueReader<Value[keyof Value]>['fromProtobuf'] }[] = [];
  for (const name of names) known[fields[name][0]] = { name, read: fields[name][1].fromProtobuf as never };
  return {
    empty,
    fromProtobuf: (reader) => {
      const value = { ...empty };
      const outerEnd = reader.enter();
      for (let number = reader.next(); number !== 0; number = reader.next()) {
        const field = known[number];
        if (field === undefined) reader.skip();
        else value[field.name] = field.read(reader, value[field.name], field.name as string);
      }
      reader.leave(outerEnd);
      return value;
    },
    fromJson: (json, ownName) => {
      if (!isRecord(json)) throw wrongType(ownName);
      const value = { ...empty };
      for (const name of names) {
        const given = json[name] ?? undefined;
        if (given !== undefined) value[name] = fields[name][1].fromJson(given, name);
      }
      return value;
    },
  };
}

/** Reads the objects of one kind, from protobuf and from JSON. */
export interface ItemReader<Item> {
  readonly kind: Kind;
  /** Throws `MalformedProtobuf` or `OverBound`. */
  readonly fromProtobuf: (reader: ProtobufReader) => Item;
  /** Throws `MalformedItem` or `OverBound`. */
  readonly fromJson: (object: unknown) => Item;
  /** Counts the ports and cluster IPs of a Service. */
  readonly entriesOf?: (item: Item) => number;
}

// Field numbers: k8s.io/api/{core,networking}/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

export const METADATA = {
  name: [1, text],
  namespace: [3, text],
  uid: [5, text],
  resourceVersion: [6, text],
  creationTimestamp: [8, time],
} as const;

const parentRef = messageOf({ group: [1, text], resource: [2, text], namespace: [3, text], name: [4, text] });
const ipAddress = messageOf({
  metadata: [1, messageOf({ ...METADATA, labels: [11, labelsOf(FAMILY_LABEL, ADDRESS_MANAGED_BY_LABEL)] })],
  spec: [2, messageOf({ parentRef: [1, parentRef] })],
});

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = readerOf('IPAddress', ipAddress, ({ metadata, spec }) => {
  const { name, uid, resourceVersion, creationTimestamp: createdAtMs, labels } = metadata;
  const { [FAMILY_LABEL]: family = '', [ADDRESS_MANAGED_BY_LABEL]: managedBy = '' } = labels;
  return { name, uid, resourceVersion, createdAtMs, family, managedBy, parent: spec.parentRef };
});

export function readerOf<Value, Item>(
  kind: Kind,
  { empty, fromProtobuf, fromJson }: ValueReader<Value>,
  itemIn: (value: Value) => Item,
): ItemReader<Item> {
  return {
    kind,
    fromProtobuf: (reader) => itemIn(fromProtobuf(reader, empty, kind)),
    fromJson: (object) => itemIn(fromJson(object, kind)),
  };
}

/** Returns every Service of the cluster, for commands. A pass reads the Services one by one instead. */
export function listAllServices(port: Pick<ClusterPort, 'services'>): Promise<ServiceClaim[]> {
  return Array.fromAsync(port.services());
}
