import { SecretSearch } from './secret-search.ts';

type Headers = Readonly<Record<string, string>>;
type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Shorter credentials would match unrelated words. */
const SHORTEST = 8;

/**
 * Masks the credential of a request in its reply, also with JSON escapes: proxies print the requests that they refuse,
 * and replies end up in logs, findings and the status page. The length stays, so that every format still parses. A
 * server that disguises the credential cannot be stopped.
 */
export class CredentialMask {
  readonly #secret: Buffer;

  constructor(sent: Headers) {
    this.#secret = Buffer.from((sent['Authorization'] ?? '').replace('Bearer ', ''));
  }

  headers(headers: Headers): Headers {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.#text(value)]));
  }

  /** Returns the body with a delay for bytes that may begin a credential. */
  body(body: Body): Body {
    return this.#secret.length < SHORTEST ? body : masked(body, new SecretSearch(this.#secret));
  }

  #text(value: string): string {
    if (this.#secret.length < SHORTEST) return value;
    const search = new SecretSearch(this.#secret);
    return Buffer.concat([search.push(Buffer.from(value)), search.end()]).toString();
  }
}

async function* masked(body: Body, search: SecretSearch): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    const bytes = search.push(chunk);
    if (bytes.length > 0) yield bytes;
  }
  const rest = search.end();
  if (rest.length > 0) yield rest;
}
