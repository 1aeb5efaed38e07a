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
  readonly #forms: readonly SecretForm[];

  constructor(sent: Headers) {
    const texts = textsOf((sent['Authorization'] ?? '').replace('Bearer ', ''));
    this.#forms = texts.filter(({ length }) => length >= SHORTEST).map((text) => formOf(Buffer.from(text)));
  }

  /** Returns the masked headers. Searches all headers as one text, because many searches would take longer than the request. */
  headers(headers: Headers): Headers {
    const values = Buffer.from(Object.values(headers).join(BETWEEN_HEADERS));
    for (const form of this.#forms) mask(values, form, true);
    const masked = values.toString().split(BETWEEN_HEADERS);
    return Object.fromEntries(Object.keys(headers).map((name, index) => [name, masked[index] ?? '']));
  }

  /**
   * Returns the masked body. Delays bytes that may be the beginning of the credential until the next bytes arrive. In a list of
   * objects, masks only the credential itself, with or without JSON escapes: searching for other forms takes time, and proxies,
   * which print these forms, do not send such lists.
   */
  async *body(body: Body, isList = false): AsyncGenerator<Uint8Array> {
    const forms = isList ? this.#forms.slice(0, 1) : this.#forms;
    let held: Buffer = Buffer.alloc(0);
    let searched = 0;
    for await (const chunk of body) {
      held = Buffer.concat([held, chunk]);
      // Searches held bytes again only together with as many new bytes: otherwise, small pieces would take long.
      if (held.length < 2 * searched) continue;
      const end = Math.min(held.length, ...forms.map((form) => mask(held, form, false)));
      if (end > 0) yield held.subarray(0, end);
      held = held.subarray(end);
      searched = held.length;
    }
    for (const form of forms) mask(held, form, true);
    if (held.length > 0) yield held;
  }
}

/** Returns a token, the token escaped for a URL or HTML, and the part of the base64 of `user:token` that contains the token. */
function textsOf(token: string): readonly string[] {
  const html = token.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll("'", '&#39;');
  const base64 = [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(token)]);
    return bytes.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
  });
  const escaped = [encodeURIComponent(token), html.replaceAll('"', '&quot;'), html.replaceAll('"', '&#34;')];
  return [...new Set([token, ...escaped, ...base64])];
}

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** The maximum number of backslashes before an escaped character: each level of JSON within JSON doubles their number. */
const MOST_BACKSLASHES = 16;
/** The first, fast search looks for this number of bytes from the start of the secret. */
const PREFIX = 8;

type SecretForm = ReturnType<typeof formOf>;

/** @param secret at least 8 bytes; characters outside ASCII are found only without escapes */
function formOf(secret: Buffer) {
  // For each number of matched bytes, the number with which to continue after a mismatch (Knuth, Morris and Pratt).
  const fallbacks = new Int32Array(secret.length);
  let matched = 0;
  for (let at = 1; at < secret.length; at += 1) {
    matched = nextMatched(secret, fallbacks, matched, secret[at]);
    fallbacks[at] = matched;
  }
  const escaped = ['u', ...['"', '/', '\\'].filter((character) => secret.includes(character))];
  // Bytes without which the secret cannot be there: its prefix, and the beginning of each escape that its characters may have.
  const needles = [secret.subarray(0, PREFIX), ...escaped.map((character) => Buffer.from(`\\${character}`))];
  return { secret, fallbacks, needles };
}

/** Returns how many bytes of the secret match after one more byte of the text. */
function nextMatched(secret: Buffer, fallbacks: Int32Array, before: number, byte: number | undefined): number {
  let matched = before;
  while (matched > 0 && secret[matched] !== byte) matched = fallbacks[matched - 1] ?? 0;
  return secret[matched] === byte ? matched + 1 : matched;
}

/**
 * Masks a secret, also with JSON escapes (`\u003c`, `\u003C`, `\/`), without changing the length. Returns the position from which
 * the bytes may be the beginning of the secret. Reads each byte a limited number of times, because a tenant may choose a secret
 * and replies that make other searches slow.
 */
function mask(bytes: Buffer, { secret, fallbacks, needles }: SecretForm, isEnd: boolean): number {
  // The position of each of the last characters.
  const begins = new Uint32Array(secret.length);
  let matched = 0;
  const isNear = needles.some((needle) => bytes.includes(needle));
  let at = isNear ? 0 : Math.max(0, bytes.length - PREFIX - MOST_BACKSLASHES);
  let count = 0;
  for (; at < bytes.length; count += 1) {
    const byte = bytes[at] ?? -1;
    const escaped = byte === BACKSLASH ? escapedAt(bytes, at, isEnd) : NOT_ESCAPED;
    if (escaped === undefined) break;
    begins[count % secret.length] = at;
    matched = nextMatched(secret, fallbacks, matched, escaped === NOT_ESCAPED ? byte : escaped.code);
    at += escaped.length;
    if (matched < secret.length) continue;
    bytes.fill('*', begins[(count + 1) % secret.length], at);
    matched = 0;
  }
  return matched === 0 ? at : (begins[(count - matched) % secret.length] ?? at);
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
