type Headers = Readonly<Record<string, string>>;
type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** A character that no header contains. */
const BETWEEN_HEADERS = '\n';
/** Credentials with fewer bytes are not masked, because they would match unrelated words. */
const SHORTEST = 8;

/**
 * Masks the credential of a request in the reply to this request. Some proxies print the requests that they refuse, and replies
 * get into logs, findings and the status page. Masks each form in which proxies print a credential, with or without JSON escapes,
 * but not a credential that the server disguises. The length of the reply does not change, so that every format still parses.
 */
export class CredentialMask {
  readonly #forms: readonly Buffer[];

  constructor(sent: Headers) {
    const forms = formsOf((sent['Authorization'] ?? '').replace('Bearer ', ''));
    this.#forms = forms.map((form) => Buffer.from(form)).filter(({ length }) => length >= SHORTEST);
  }

  /** Returns the masked headers. Searches them as one text, because searching each value would take longer than the call. */
  headers(headers: Headers): Headers {
    const values = Buffer.from(Object.values(headers).join(BETWEEN_HEADERS));
    const masked = maskAll(this.#searches(this.#forms.length), values).toString().split(BETWEEN_HEADERS);
    return Object.fromEntries(Object.keys(headers).map((name, index) => [name, masked[index] ?? '']));
  }

  /**
   * Returns the masked body. Delays bytes that may be the beginning of the credential until the next bytes arrive. In a list of
   * objects, masks the credential itself but not its other forms (`formsOf`): searching for them takes time, and proxies, which
   * print these forms, do not send such lists.
   */
  body(body: Body, isList = false): Body {
    const searches = this.#searches(isList ? 1 : this.#forms.length);
    return searches.length === 0 ? body : masked(body, searches);
  }

  #searches(count: number): SecretSearch[] {
    return this.#forms.slice(0, count).map((form) => new SecretSearch(form));
  }
}

/** Returns a token, the token escaped for a URL or HTML, and the part of the base64 of `user:token` that contains the token. */
function formsOf(token: string): readonly string[] {
  const html = token.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll("'", '&#39;');
  const base64 = [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(token)]);
    return bytes.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
  });
  const escaped = [encodeURIComponent(token), html.replaceAll('"', '&quot;'), html.replaceAll('"', '&#34;')];
  return [...new Set([token, ...escaped, ...base64])];
}

async function* masked(body: Body, searches: readonly SecretSearch[]): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    const bytes = searches.reduce((bytes, search) => search.push(bytes), chunk);
    if (bytes.length > 0) yield bytes;
  }
  const rest = maskAll(searches, Buffer.alloc(0));
  if (rest.length > 0) yield rest;
}

/** Returns the bytes that the searches still hold back, and then the last bytes, all masked. */
function maskAll(searches: readonly SecretSearch[], last: Buffer): Buffer {
  return searches.reduce((bytes, search) => Buffer.concat([search.push(bytes), search.end()]), last);
}

const BACKSLASH = 0x5c;
const ASTERISK = 0x2a;
const LETTER_U = 0x75;
/** The maximum number of backslashes before an escaped character: each level of JSON within JSON doubles their number. */
const MOST_BACKSLASHES = 16;
/**
 * The number of bytes of the secret that `placesToSearch` finds quickly. The slower search begins only at positions where these
 * bytes are, or where one of them may be escaped.
 */
const PREFIX = 8;

/**
 * Masks a secret in bytes that arrive piece by piece, including copies with JSON escapes (`\u003c`, `\u003C`, `\/`). The
 * length does not change. Each byte is read a limited number of times (Knuth, Morris and Pratt), because a tenant may
 * choose a secret and replies that make other searches slow.
 */
export class SecretSearch {
  readonly #secret: Buffer;
  readonly #fallbacks: Int32Array;
  /** The first two bytes of each escape that may stand for a character of the secret. */
  readonly #escapes: readonly Buffer[];
  /** The start of each matching character, as an index in the held bytes. Entries before `#first` no longer match. */
  #begins: number[] = [];
  #first = 0;
  #held: Buffer = Buffer.alloc(0);
  /** The number of held bytes that have been searched. */
  #at = 0;

  /** @param secret at least 8 bytes of ASCII; other characters are found only unescaped */
  constructor(secret: Buffer) {
    this.#secret = secret;
    this.#fallbacks = fallbacksIn(secret);
    const escaped = ['"', '/', '\\'].filter((character) => secret.includes(character));
    this.#escapes = ['u', ...escaped].map((character) => Buffer.from(`\\${character}`));
  }

  /** Returns the bytes that can be passed on, and holds back a possible beginning of the secret. */
  push(chunk: Uint8Array): Buffer {
    return this.#search(Buffer.concat([this.#held, chunk]), false);
  }

  end(): Buffer {
    return this.#search(this.#held, true);
  }

  #search(bytes: Buffer, isEnd: boolean): Buffer {
    const nextPlace = placesToSearch(bytes, [this.#secret.subarray(0, PREFIX), ...this.#escapes]);
    while (this.#at < bytes.length) {
      if (this.#matched === 0) this.#at = nextPlace(this.#at);
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

/** Returns, for each number of matched bytes, the number with which to continue after a mismatch (Knuth-Morris-Pratt). */
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

/**
 * Returns a function that returns the first position, at or after `from`, where a match may begin. It finds the needles
 * with `Buffer.indexOf`, which is fast. A match may always begin in the last few bytes, because the rest of the secret
 * may not have arrived.
 */
function placesToSearch(bytes: Buffer, needles: readonly Buffer[]): (from: number) => number {
  const found = needles.map((needle) => ({ needle, at: -1 }));
  return (from) => {
    let next = bytes.length - PREFIX - MOST_BACKSLASHES;
    for (const each of found) {
      if (each.at < from) {
        const at = bytes.indexOf(each.needle, from);
        each.at = at < 0 ? bytes.length : at;
      }
      // Up to PREFIX characters of the secret and MOST_BACKSLASHES backslashes may precede an escape.
      const before = each.needle[0] === BACKSLASH ? PREFIX + MOST_BACKSLASHES : 0;
      next = Math.min(next, each.at - before);
    }
    return Math.max(from, next);
  };
}

interface Escaped {
  /** The code of the character; -1 if it is not ASCII. */
  readonly code: number;
  readonly length: number;
}

const NOT_ESCAPED: Escaped = { code: BACKSLASH, length: 1 };

/** Reads an escape that begins with a backslash. Returns `undefined` if more bytes are needed. */
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
