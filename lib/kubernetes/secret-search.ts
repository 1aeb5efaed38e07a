const BACKSLASH = 0x5c;
const ASTERISK = 0x2a;
const LETTER_U = 0x75;
/** A text in JSON that is in JSON in turn has more, each time twice as many. */
const MOST_BACKSLASHES = 16;
/** A place may be the begin of a secret if so many bytes are those of it, or one of them is escaped. */
const PREFIX = 8;

/**
 * Masks a secret in bytes that arrive piece by piece, also where characters of it are escaped as JSON allows (`\u003c`,
 * `\u003C`, `\/`). The length stays. Every byte is looked at a bounded number of times (Knuth, Morris and Pratt), whatever
 * the secret and the bytes are: a secret may be chosen by the server that repeats it.
 */
export class SecretSearch {
  readonly #secret: Buffer;
  readonly #fallbacks: Int32Array;
  /** What an escape begins with that can stand for a character of the secret. */
  readonly #escapes: readonly Buffer[];
  /** Where each character begins of those that match, from the beginning of what is held; those before `#first` no longer do. */
  #begins: number[] = [];
  #first = 0;
  #held: Buffer = Buffer.alloc(0);
  /** So much of what is held was searched. */
  #at = 0;

  /** @param secret of at least 8 bytes of ASCII; other characters are found as they are, not escaped */
  constructor(secret: Buffer) {
    this.#secret = secret;
    this.#fallbacks = fallbacksIn(secret);
    const escaped = ['"', '/', '\\'].filter((character) => secret.includes(character));
    this.#escapes = ['u', ...escaped].map((character) => Buffer.from(`\\${character}`));
  }

  /** Returns the bytes that can be passed on: what may be the beginning of the secret is held back. */
  push(chunk: Uint8Array): Buffer {
    return this.#search(Buffer.concat([this.#held, chunk]), false);
  }

  /** Returns what was held back. */
  end(): Buffer {
    return this.#search(this.#held, true);
  }

  #search(bytes: Buffer, isEnd: boolean): Buffer {
    const places = new PlacesToSearch(bytes, [this.#secret.subarray(0, PREFIX), ...this.#escapes]);
    while (this.#at < bytes.length) {
      if (this.#matched === 0) this.#at = places.next(this.#at);
      const byte = bytes[this.#at] ?? -1;
      const escaped = byte === BACKSLASH ? escapedAt(bytes, this.#at, isEnd) : NOT_ESCAPED;
      if (escaped === undefined) break;
      this.#match(escaped === NOT_ESCAPED ? byte : escaped.code, this.#at);
      this.#at += escaped.length;
      if (this.#matched < this.#secret.length) continue;
      bytes.fill(ASTERISK, this.#begins[this.#first], this.#at);
      this.#forget(this.#matched);
    }
    const isOver = isEnd ? bytes.length : (this.#begins[this.#first] ?? this.#at);
    this.#begins = this.#begins.slice(this.#first).map((begin) => begin - isOver);
    this.#first = 0;
    this.#at -= isOver;
    this.#held = bytes.subarray(isOver);
    return bytes.subarray(0, isOver);
  }

  get #matched(): number {
    return this.#begins.length - this.#first;
  }

  #match(code: number, at: number): void {
    let matched = this.#matched;
    while (matched > 0 && this.#secret[matched] !== code) matched = this.#fallbacks[matched - 1] ?? 0;
    this.#forget(this.#matched - matched);
    if (this.#secret[matched] === code) this.#begins.push(at);
  }

  #forget(characters: number): void {
    this.#first += characters;
    if (this.#first < this.#secret.length) return;
    this.#begins = this.#begins.slice(this.#first);
    this.#first = 0;
  }
}

/** How many characters still match when the one after so many does not. */
function fallbacksIn(secret: Buffer): Int32Array {
  const fallbacks = new Int32Array(secret.length);
  let matched = 0;
  for (let at = 1; at < secret.length; at += 1) {
    while (matched > 0 && secret[matched] !== secret[at]) matched = fallbacks[matched - 1] ?? 0;
    if (secret[matched] === secret[at]) matched += 1;
    fallbacks[at] = matched;
  }
  return fallbacks;
}

/** Finds by native search where one of the needles is. */
class PlacesToSearch {
  readonly #bytes: Buffer;
  readonly #needles: { readonly needle: Buffer; at: number }[];

  constructor(bytes: Buffer, needles: readonly Buffer[]) {
    this.#bytes = bytes;
    this.#needles = needles.map((needle) => ({ needle, at: -1 }));
  }

  /** The next place from `from` on; the last few bytes always are one, which may be cut off. */
  next(from: number): number {
    let next = this.#bytes.length - PREFIX - MOST_BACKSLASHES;
    for (const each of this.#needles) {
      if (each.at < from) {
        const found = this.#bytes.indexOf(each.needle, from);
        each.at = found < 0 ? this.#bytes.length : found;
      }
      // Before an escape there may be fewer characters of the secret than are searched for, and more backslashes.
      const before = each.needle[0] === BACKSLASH ? PREFIX + MOST_BACKSLASHES : 0;
      next = Math.min(next, each.at - before);
    }
    return Math.max(from, next);
  }
}

interface Escaped {
  /** Of the character that the bytes stand for; -1 where it is not ASCII. */
  readonly code: number;
  readonly length: number;
}

const NOT_ESCAPED: Escaped = { code: BACKSLASH, length: 1 };

/** What begins with a backslash. `undefined`: it is not known before more bytes are there. */
function escapedAt(bytes: Buffer, at: number, isEnd: boolean): Escaped | undefined {
  let end = at + 1;
  while (bytes[end] === BACKSLASH && end - at < MOST_BACKSLASHES) end += 1;
  const isCut = end + (bytes[end] === LETTER_U ? 5 : 1) > bytes.length;
  if (isCut && !isEnd) return undefined;
  const escaped = bytes[end];
  if (escaped === 0x22 || escaped === 0x2f) return { code: escaped, length: end + 1 - at };
  const digits = bytes.toString('latin1', end + 1, end + 5);
  if (escaped !== LETTER_U || !/^[0-9a-f]{4}$/i.test(digits)) return NOT_ESCAPED;
  const code = Number.parseInt(digits, 16);
  return { code: code < 0x80 ? code : -1, length: end + 5 - at };
}
