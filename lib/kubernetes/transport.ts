import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream';
import { isNativeError } from 'node:util/types';
import { createGunzip } from 'node:zlib';
import { unlessAborted } from '../cluster/async.ts';
import { setLatest } from '../cluster/values.ts';
import { HttpClient } from './http-client.ts';
import type { ApiServerAccess, TlsMaterial } from './kubeconfig.ts';
import { CredentialMask } from './mask-credential.ts';
import { inLargePieces, OverBound } from './reply-bounds.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path with the query: `/api/v1/services?fieldManager=me`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The reply may be gzip. A protobuf body of a 200 is passed on while it arrives. */
  readonly streamed?: true;
}

interface ReplyHead {
  readonly status: number;
  /** Names in lower case; repeated headers are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A reply whose body is still arriving. The body must be read, or its iteration ended. */
export interface OpenReply extends ReplyHead {
  readonly body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

export interface ApiReply extends ReplyHead {
  readonly body: Uint8Array;
}

/**
 * Sends one HTTP request to an API server and adds the credential. Returns a reply of any status. Throws if there is no
 * reply; the body throws if it is incomplete. The signal ends both at once.
 */
export type Transport = (request: ApiRequest, signal: AbortSignal) => Promise<OpenReply>;

const CONNECTIONS_PER_SERVER = 4;
const MOST_POOLS = 100;

/**
 * Returns the key of a connection pool. A client certificate authenticates a whole connection, so another certificate
 * needs other connections.
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
  // At once: a request that waits for a connection of its pool would end only when it has one.
  return ({ method, path, headers, body, streamed }, signal) =>
    unlessAborted(signal, async () => {
      const credential = await access.authHeaders();
      const reply = await client.request({
        method,
        path: `${access.basePath}${path}`,
        headers: { ...headers, ...credential, ...(streamed && { 'accept-encoding': 'gzip' }) },
        body,
        signal,
      });
      const mask = new CredentialMask(credential);
      const arriving = inLargePieces(reply.body);
      const isGzip = streamed === true && reply.headers['content-encoding'] === 'gzip';
      return {
        status: reply.status,
        headers: mask.headers(reply.headers),
        body: mask.body(isGzip ? gunzipped(arriving) : arriving),
      };
    });
}

/** The connections of this process: one client per API server and client certificate, shared by all passes. */
export class ApiServerConnections {
  readonly #clients = new Map<string, HttpClient>();

  transport(access: ApiServerAccess): Transport {
    const key = poolKey(access.server, access.tls());
    const client = this.#clients.get(key) ?? clientFor(access);
    // A dropped client is not closed, because a pass may still use it. Its idle connections end by themselves.
    setLatest(this.#clients, key, client, MOST_POOLS);
    return transportOver(client, access);
  }

  /** Closes every connection at once. */
  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.destroy();
    this.#clients.clear();
  }
}

function clientFor({ server, tls, lookup }: ApiServerAccess): HttpClient {
  return new HttpClient(server, { tls: tls(), lookup, connections: CONNECTIONS_PER_SERVER });
}

/** A body that is not gzip, or not one whole gzip stream. */
export class MalformedGzip extends Error {
  override readonly name = 'MalformedGzip';
}

/** The size of 64 MiB of random bytes as gzip. A stream can continue without any output. */
const LARGEST_GZIP_BYTES = 48 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/**
 * Decompresses a body while it arrives, in pieces of at most 64 KiB on demand, so that a bomb costs no more than the
 * reader accepts. Length and checksum must be right, and nothing may follow. Throws `MalformedGzip`, `OverBound`, and
 * what the body throws.
 */
async function* gunzipped(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES, rejectGarbageAfterEnd: true });
  // Failures of the pipeline end the iteration below.
  pipeline(bounded(body), gunzip, () => undefined);
  try {
    for await (const piece of gunzip) yield piece as Uint8Array;
  } catch (error) {
    if (!isNativeError(error) || !('code' in error) || !OF_ZLIB.test(String(error.code))) throw error;
    throw new MalformedGzip(`gzip with an error (${error.message})`, { cause: error });
  }
}

const OF_ZLIB = /^(Z_|ERR_TRAILING_JUNK_)/;

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > LARGEST_GZIP_BYTES) throw new OverBound(`more than ${LARGEST_GZIP_BYTES / 1024 / 1024} MiB of gzip`);
    yield chunk;
  }
}
