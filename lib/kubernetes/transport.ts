import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream';
import { isNativeError } from 'node:util/types';
import { createGunzip } from 'node:zlib';
import { unlessAborted } from '../util/async.ts';
import { setLatest } from '../util/values.ts';
import { HttpClient, type HttpReply, type HttpRequest } from './http-client.ts';
import type { ApiServerAccess, TlsMaterial } from './kubeconfig.ts';
import { CredentialMask } from './mask-credential.ts';
import { bounded, inLargePieces } from './reply-bounds.ts';

export interface ApiRequest extends HttpRequest {
  /** True if the reply may be compressed with gzip. A protobuf body with status 200 is then passed on while it arrives. */
  readonly streamed?: true;
}

/**
 * Sends one HTTP request with the credential. Returns a reply of any status; throws if no reply arrives. Reading an incomplete
 * body throws. The signal ends the request and the body.
 */
export type Transport = (request: ApiRequest, signal: AbortSignal) => Promise<HttpReply>;

const CONNECTIONS_PER_SERVER = 4;
const MOST_POOLS = 100;

/**
 * Returns the key of a connection pool. Each client certificate has its own pool, because TLS authenticates the whole connection.
 */
export function poolKey(origin: string, tls: TlsMaterial): string {
  const { ca = '', cert = '', key = '', servername = '', rejectUnauthorized } = tls;
  const hash = createHash('sha256');
  for (const part of [origin, ca, cert, key, servername, String(rejectUnauthorized)]) {
    hash.update(`${part.length}:`).update(part);
  }
  return hash.digest('base64');
}

function transportOver(client: HttpClient, access: ApiServerAccess): Transport {
  // Without `unlessAborted`, a request that waits for a free connection would notice only later that the signal aborted.
  return ({ streamed, ...request }, signal) =>
    unlessAborted(signal, async () => {
      const credential = await access.authHeaders();
      const path = `${access.basePath}${request.path}`;
      const headers = { ...request.headers, ...credential, ...(streamed && { 'accept-encoding': 'gzip' }) };
      const reply = await client.request({ ...request, path, headers }, signal);
      const mask = new CredentialMask(credential);
      const arriving = inLargePieces(reply.body);
      const isGzip = streamed === true && reply.headers['content-encoding'] === 'gzip';
      return {
        status: reply.status,
        headers: mask.headers(reply.headers),
        body: mask.body(isGzip ? gunzipped(arriving) : arriving, streamed === true && reply.status === 200),
      };
    });
}

/** One client per API server and client certificate, shared by all passes of a process. */
export class ApiServerConnections {
  readonly #clients = new Map<string, HttpClient>();

  transport(access: ApiServerAccess): Transport {
    const key = poolKey(access.server, access.tls());
    const { server, lookup } = access;
    const options = { tls: access.tls(), lookup, connections: CONNECTIONS_PER_SERVER };
    const client = this.#clients.get(key) ?? new HttpClient(server, options);
    // A dropped client is not closed, because a pass may still use it. Its idle connections end by themselves.
    setLatest(this.#clients, key, client, MOST_POOLS);
    return transportOver(client, access);
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.destroy();
    this.#clients.clear();
  }
}

export class MalformedGzip extends Error {
  override readonly name = 'MalformedGzip';
}

/** The maximum number of compressed bytes of a reply, because a gzip stream can continue without any output. */
const LARGEST_GZIP_BYTES = 48 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/**
 * Decompresses a body while it arrives. Decompresses each piece, of at most 64 KiB, only on request, so that a decompression bomb
 * costs no more than the reader accepts. Length and checksum must be correct, and the stream must end. Throws `MalformedGzip` or
 * `OverBound`.
 */
async function* gunzipped(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES, rejectGarbageAfterEnd: true });
  // Failures of the pipeline end the iteration below.
  pipeline(bounded(body, LARGEST_GZIP_BYTES, ' of gzip'), gunzip, () => undefined);
  try {
    for await (const piece of gunzip) yield piece as Uint8Array;
  } catch (error) {
    if (!isNativeError(error) || !('code' in error) || !OF_ZLIB.test(String(error.code))) throw error;
    throw new MalformedGzip(`gzip with an error (${error.message})`, { cause: error });
  }
}

const OF_ZLIB = /^(Z_|ERR_TRAILING_JUNK_)/;

interface KeptConnection {
  readonly client: HttpClient;
  readonly openedAtMs: number;
}

/** The time limit for an answer on a kept connection. After this time, a probe can still try a new connection. */
const KEPT_LIMIT_MS = 1_000;
/** How long a connection is kept: enough for three probes, one every 10 s. The next connection verifies the certificate again. */
const LONGEST_KEPT_MS = 25_000;
/** The maximum number of kept connections. Each connection takes about 120 KB. */
const MOST_KEPT = 128;

function mayReuse(openedAtMs: number, nowMs: number): boolean {
  return nowMs >= openedAtMs && nowMs - openedAtMs < LONGEST_KEPT_MS;
}

/** The connections that a process keeps open for probes. They do not keep the process alive. */
export class KeptConnections {
  readonly #nowMs: () => number;
  readonly #kept = new Map<string, KeptConnection>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /**
   * Returns the answer on the kept connection if it is 200 and in time, or else the answer on a new connection.
   * @param ask sends a request. If `limitMs` is given, the request must end within this time.
   */
  async ask<Answer extends { readonly status: number }>(
    key: string,
    open: () => HttpClient,
    ask: (client: HttpClient, limitMs?: number) => Promise<Answer>,
  ): Promise<Answer> {
    const kept = this.#take(key);
    const askBriefly = (client: HttpClient) => ask(client, KEPT_LIMIT_MS);
    const known = kept && (await this.#askOn(key, kept, askBriefly).catch(() => undefined));
    return known?.status === 200 ? known : this.#askOn(key, { client: open(), openedAtMs: this.#nowMs() }, ask);
  }

  /** Keeps the connection after an answer 200 within `KEPT_LIMIT_MS`, because the next answer must arrive within this limit. */
  async #askOn<Answer extends { readonly status: number }>(
    key: string,
    connection: KeptConnection,
    ask: (client: HttpClient) => Promise<Answer>,
  ): Promise<Answer> {
    const askedAtMs = this.#nowMs();
    let isKept = false;
    try {
      const answer = await ask(connection.client);
      isKept = answer.status === 200 && this.#nowMs() - askedAtMs < KEPT_LIMIT_MS;
      return answer;
    } finally {
      if (isKept) this.#keep(key, connection);
      else connection.client.destroy();
    }
  }

  close(): void {
    for (const { client } of this.#kept.values()) client.destroy();
    this.#kept.clear();
  }

  /** Removes the connection from the kept connections, so that no two probes use it. */
  #take(key: string): KeptConnection | undefined {
    const found = this.#kept.get(key);
    this.#kept.delete(key);
    if (found === undefined || (found.client.isIdle && mayReuse(found.openedAtMs, this.#nowMs()))) return found;
    found.client.destroy();
    return undefined;
  }

  /**
   * Keeps a connection, or closes it if the limit is reached. If the oldest connection were closed instead, a process with many
   * servers would never reuse a connection.
   */
  #keep(key: string, connection: KeptConnection): void {
    const nowMs = this.#nowMs();
    for (const [each, { client, openedAtMs }] of this.#kept) {
      if (mayReuse(openedAtMs, nowMs)) continue;
      client.destroy();
      this.#kept.delete(each);
    }
    if (this.#kept.size < MOST_KEPT && !this.#kept.has(key)) this.#kept.set(key, connection);
    else connection.client.destroy();
  }
}
