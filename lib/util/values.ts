export type JsonRecord = Readonly<Record<string, unknown>>;

const LATEST_MS = 8.64e15;

/** Returns a time in UTC, such as `2026-01-31T12:00:00.000Z`; the number of ms if JavaScript has no such date. */
export function isoTime(ms: number): string {
  if (!(Math.abs(ms) <= LATEST_MS)) return String(ms);
  // oxlint-disable-next-line no-restricted-globals -- formats a given time, and reads no clock.
  return new Date(ms).toISOString();
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Merges a patch as RFC 7396 defines. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field];
    else result[field] = mergePatch(result[field], value);
  }
  return result;
}

type Defined<Fields> = {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  readonly [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};

/** Removes the fields that are `undefined`, because an absent field of an item or a document is not written. */
export function defined<const Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}

/** Returns the result of a parser; `undefined` if it throws. */
export function attempt<Result>(parse: () => Result): Result | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** Returns the value of a JSON text; `undefined` if the text is not JSON. */
export function jsonIn(text: string): unknown {
  return attempt(() => JSON.parse(text));
}

/** Returns the code of an error of Node.js, such as `ENOENT`. Without a code, returns the text of the error. */
export function codeOf(error: unknown): string {
  return isRecord(error) && 'code' in error ? String(error['code']) : String(error);
}

export function firstIndexes<Value>(values: readonly Value[]): ReadonlyMap<Value, number> {
  const first = new Map<Value, number>();
  for (const [index, value] of values.entries()) if (!first.has(value)) first.set(value, index);
  return first;
}

/** Sets an entry of a map. If the map then has more than `most` entries, drops the entry that was set longest ago. */
export function setLatest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

/** Returns a text of at most `longest` characters. An ellipsis at its end shows that it was cut. */
export function cutText(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1).toWellFormed()}…`;
}

const LONGEST_TEXT = 300;

/**
 * Returns one line of at most `longest` characters, followed by an ellipsis if the text was cut. Every text from an API
 * server, a name server or a certificate passes through here before it becomes part of a message. The text is cut
 * first, so that the cost does not depend on its length.
 */
export function boundedText(value: unknown, longest = LONGEST_TEXT): string {
  const text = typeof value === 'object' && value !== null ? 'an object' : String(value);
  const line = text.slice(0, longest).toWellFormed().replace(/\s+/g, ' ').trim();
  return text.length > longest ? `${line}…` : line;
}

/** An error with a code. Its message states what failed, why, and what to do next. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
