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
  readonly #secrets: readonly Buffer[];

  /** A password may be a common word: it is masked only in failures, which are not written back. */
  constructor(sent: Headers, isFailure: boolean) {
    const [scheme = '', value = ''] = (sent['Authorization'] ?? '').split(' ', 2);
    const password = scheme === 'Basic' && isFailure ? passwordIn(value) : '';
    this.#secrets = [value, password].map((secret) => Buffer.from(secret)).filter(({ length }) => length >= SHORTEST);
  }

  headers(headers: Headers): Headers {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.#text(value)]));
  }

  /** Returns the body with a delay for bytes that may begin a credential. */
  body(body: Body): Body {
    return this.#secrets.reduce<Body>((given, secret) => masked(given, new SecretSearch(secret)), body);
  }

  #text(value: string): string {
    return this.#secrets
      .reduce<Buffer>((bytes, secret) => {
        const search = new SecretSearch(secret);
        return Buffer.concat([search.push(bytes), search.end()]);
      }, Buffer.from(value))
      .toString();
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

function passwordIn(basic: string): string {
  const pair = Buffer.from(basic, 'base64').toString();
  return pair.slice(pair.indexOf(':') + 1);
}
