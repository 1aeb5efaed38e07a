import { TableError } from './errors.ts';
import type { Item, TableValue } from './key-value-table.ts';
import { fieldsIn, isList } from './values.ts';

/** Reads the fields of a stored value, each of the kind that is asked for; anything else is `Corrupt`. */
export interface ItemFields {
  text(field: string): string;
  optionalText(field: string): string | undefined;
  /** A whole number of at least 0. */
  count(field: string): number;
  flag(field: string): boolean;
  bytes(field: string): Uint8Array;
  oneOf<Text extends string>(field: string, texts: readonly Text[]): Text;
  number(field: string): number;
  optionalNumber(field: string): number | undefined;
  fields(field: string): ItemFields;
  optionalFields(field: string): ItemFields | undefined;
  /** What `read` makes of each field of a map of any names. */
  each<Content>(field: string, read: (fields: ItemFields, name: string) => Content): Record<string, Content>;
  list(field: string): ItemFields[];
  /** A list of texts, `least` of them at least. */
  texts(field: string, least: number): readonly string[];
}

const FIRST_SCHEMA = 1;
const PUT_RIGHT = 'put it right, or remove it to start anew';

/**
 * The fields of an item's value. It is read in `schema` and in the one before; what differs between them is the
 * caller's to tell by `item.schema`. `remedy` is what to do about an item that does not parse.
 * @throws TableError `SchemaTooNew` for an item that a later version wrote, `Corrupt` for one that does not parse.
 */
export function fieldsOf(item: Item, schema: number, remedy: string = PUT_RIGHT): ItemFields {
  const corrupt = (what: string) =>
    new TableError(
      'Corrupt',
      `Item ${item.cluster}/${item.key} does not parse: ${what}. It is left as it is; ${remedy}.`,
    );
  if (item.schema > schema) {
    throw new TableError(
      'SchemaTooNew',
      `Item ${item.cluster}/${item.key} has schema ${item.schema} and this version reads ${schema}: it is left as it is; deploy the newer version.`,
    );
  }
  if (item.schema < Math.max(FIRST_SCHEMA, schema - 1)) {
    throw corrupt(
      `its schema is ${item.schema}, which ${item.schema < FIRST_SCHEMA ? 'no' : 'only an older'} version wrote`,
    );
  }
  return reader(corrupt, '', item.value);
}

function reader(corrupt: (what: string) => TableError, path: string, value: TableValue): ItemFields {
  const fields = fieldsIn(value);
  if (fields === undefined) throw corrupt(`${path === '' ? 'its value' : path.slice(0, -1)} is not a map`);

  /** The field when it is of the kind wanted, `undefined` when there is none. */
  const optional = <Kind extends TableValue>(field: string, kind: string, is: (v: TableValue) => v is Kind) => {
    const content = fields[field];
    if (content === undefined) return undefined;
    if (!is(content)) throw corrupt(`${path}${field} is not ${kind}`);
    return content;
  };
  const required = <Kind>(field: string, content: Kind | undefined): Kind => {
    if (content === undefined) throw corrupt(`${path}${field} is missing`);
    return content;
  };
  const optionalText = (field: string) => optional(field, 'text', isText);
  const optionalNumber = (field: string) => optional(field, 'a number', isNumber);
  const optionalFields = (field: string) => {
    const content = fields[field];
    return content === undefined ? undefined : reader(corrupt, `${path}${field}.`, content);
  };

  return {
    optionalText,
    optionalNumber,
    optionalFields,
    text: (field) => required(field, optionalText(field)),
    count: (field) => required(field, optional(field, 'a whole number of at least 0', isCount)),
    number: (field) => required(field, optionalNumber(field)),
    flag: (field) => required(field, optional(field, 'true or false', isFlag)),
    bytes: (field) => required(field, optional(field, 'binary', isBytes)),
    fields: (field) => required(field, optionalFields(field)),
    each: (field, read) => {
      const inner = required(field, optionalFields(field));
      const names = Object.keys(fieldsIn(fields[field] ?? null) ?? {});
      return Object.fromEntries(names.map((name) => [name, read(inner, name)]));
    },
    list: (field) =>
      required(field, optional(field, 'a list', isList)).map((element, index) =>
        reader(corrupt, `${path}${field}[${index}].`, element),
      ),
    texts: (field, least) => {
      const isTexts = (content: TableValue): content is readonly string[] =>
        isList(content) && content.length >= least && content.every(isText);
      return required(field, optional(field, `a list of texts, ${least} or more`, isTexts));
    },
    oneOf: (field, texts) => {
      const text = required(field, optionalText(field));
      const found = texts.find((candidate) => candidate === text);
      if (found === undefined) throw corrupt(`${path}${field} is none of ${texts.join(', ')}`);
      return found;
    },
  };
}

function isText(value: TableValue): value is string {
  return typeof value === 'string';
}

function isCount(value: TableValue): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isNumber(value: TableValue): value is number {
  return typeof value === 'number';
}

function isFlag(value: TableValue): value is boolean {
  return typeof value === 'boolean';
}

function isBytes(value: TableValue): value is Uint8Array {
  return value instanceof Uint8Array;
}
