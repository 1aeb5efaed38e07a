type Headers = Readonly<Record<string, string>>;
type Body = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Shorter ones would be found in words that mean something else. */
const SHORTEST = 8;
const ASTERISK = 0x2a;

/**
 * Masks what a request's credential is, to the byte, where a reply repeats it: proxies that print the request they refuse
 * do, and what a server sends ends up in logs, findings and the status page. The length stays, so that every format still
 * parses. A server that disguises the credential is not stopped: it has it.
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
    const text = (value: string) => this.#masked([Buffer.from(value)]).toString();
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, text(value)]));
  }

  /** Holds back what may be the start of a credential until the rest arrives. */
  body(body: Body): Body {
    return this.#secrets.length === 0 ? body : this.#arriving(body);
  }

  async *#arriving(body: Body): AsyncGenerator<Uint8Array> {
    const overlap = Math.max(...this.#secrets.map(({ length }) => length)) - 1;
    let held = Buffer.alloc(0);
    for await (const chunk of body) {
      const bytes = this.#masked([held, chunk]);
      const end = Math.max(0, bytes.length - overlap);
      held = bytes.subarray(end);
      if (end > 0) yield bytes.subarray(0, end);
    }
    if (held.length > 0) yield held;
  }

  #masked(parts: readonly Uint8Array[]) {
    const bytes = Buffer.concat(parts);
    for (const secret of this.#secrets) {
      for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, at + secret.length)) {
        bytes.fill(ASTERISK, at, at + secret.length);
      }
    }
    return bytes;
  }
}

function passwordIn(basic: string): string {
  const pair = Buffer.from(basic, 'base64').toString();
  return pair.slice(pair.indexOf(':') + 1);
}
