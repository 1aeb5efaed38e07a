import { SecretSearch } from './secret-search.ts';

type Headers = Readonly<Record<string, string>>;
type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Shorter ones would be found in words that mean something else. */
const SHORTEST = 8;

/**
 * Masks what a request's credential is where a reply repeats it, also escaped as in JSON: proxies that print the request they
 * refuse do, and what a server sends ends up in logs, findings and the status page. The length stays, so that every format
 * still parses. A server that disguises the credential is not stopped: it has it.
 */
export class CredentialMask {
  readonly #secrets: readonly Buffer[];

  /** A password may be a common word: it is masked in failures, which are not written back. */
  constructor(sent: Headers, isFailure: boolean) {
    const [scheme = '', value = ''] = (sent['Authorization'] ?? '').split(' ', 2);
    const password = scheme === 'Basic' && isFailure ? passwordIn(value) : '';
    this.#secrets = [value, password].map((secret) => Buffer.from(secret)).filter(({ length }) => length >= SHORTEST);
  }

  headers(headers: Headers): Headers {
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, this.#text(value)]));
  }

  /** Holds back what may be the start of a credential until the rest arrives. */
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
