import { constants, createHash } from 'node:crypto';
import { DEFAULT_CIPHERS } from 'node:tls';
import { Agent } from 'undici';
import { setLatest } from '../cluster/values.ts';
import { gunzipped } from './gzip.ts';
import type { ApiServerAccess } from './kubeconfig.ts';
import { CredentialMask } from './mask-credential.ts';
import { inLargePieces, OverBound } from './reply-bounds.ts';
import { verifiedAs } from './server-name.ts';

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

/** Idle connections outlive two ticks of the endpoints loop, and close before load balancers (60 s) drop them. */
const KEEP_ALIVE_MS = 30_000;
/** Two SYNs, one second apart, and the handshake. */
const CONNECT_TIMEOUT_MS = 3_000;
/** A reply without progress for this long will not continue. */
const SILENCE_MS = 20_000;
const LARGEST_HEADERS = 16 * 1024;
const CONNECTIONS_PER_SERVER = 4;
const MOST_POOLS = 100;

function agentFor(access: ApiServerAccess): Agent {
  const { servername, ...material } = access.tls();
  return new Agent({
    allowH2: false,
    connections: CONNECTIONS_PER_SERVER,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: LARGEST_HEADERS,
    bodyTimeout: SILENCE_MS,
    connect: {
      ...material,
      ...verifiedAs(servername),
      ...TLS_LIMITS,
      ...(access.lookup && { lookup: access.lookup }),
      timeout: CONNECT_TIMEOUT_MS,
    },
  });
}

/**
 * Returns the key of a connection pool. A client certificate authenticates a whole connection, so another certificate
 * needs other connections.
 */
function poolKey(access: ApiServerAccess): string {
  const { ca = '', cert = '', key = '', servername = '', rejectUnauthorized } = access.tls();
  const hash = createHash('sha256');
  for (const part of [access.server, ca, cert, key, servername, String(rejectUnauthorized)]) {
    hash.update(`${part.length}:`).update(part);
  }
  return hash.digest('base64');
}

function joined(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return result;
}

function transportOver(agent: Agent, access: ApiServerAccess): Transport {
  return ({ method, path, headers, body, streamed }, signal) =>
    untilAborted(signal, async () => {
      const credential = await access.authHeaders();
      const reply = await agent.request({
        origin: access.server,
        path: `${access.basePath}${path}`,
        method,
        headers: { ...headers, ...credential, ...(streamed && { 'accept-encoding': 'gzip' }) },
        body: body ?? null,
        signal,
        onInfo: interimReplies(),
      });
      const mask = new CredentialMask(credential, reply.statusCode >= 300);
      const arriving = inLargePieces(reply.body);
      const isGzip = streamed === true && reply.headers['content-encoding'] === 'gzip';
      return {
        status: reply.statusCode,
        headers: mask.headers(joined(reply.headers)),
        body: mask.body(isGzip ? gunzipped(arriving) : arriving),
      };
    });
}

/** The connections of this process: one pool per API server and client certificate, shared by all passes. */
export class ApiServerConnections {
  readonly #agents = new Map<string, Agent>();

  transport(access: ApiServerAccess): Transport {
    const key = poolKey(access);
    const agent = this.#agents.get(key) ?? agentFor(access);
    // A dropped pool is not closed, because a pass may still use it. Its idle connections end by themselves.
    setLatest(this.#agents, key, agent, MOST_POOLS);
    return transportOver(agent, access);
  }

  /** Closes every connection at once: a graceful end would wait for a handshake that never ends. */
  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }
}

/**
 * Without DHE: the server chooses its group, and one of 10,000 bits blocks the event loop for a second per handshake
 * before any certificate is verified. No Kubernetes API server uses it. Without renegotiation: a TLS 1.2 server may
 * start it again and again, each time with the work of a handshake.
 */
export const TLS_LIMITS = {
  ciphers: `${DEFAULT_CIPHERS}:!DHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** Kubernetes sends none; proxies send a few. */
const MOST_INTERIM_REPLIES = 10;

/** Returns a counter of the interim replies (1xx) of one request. It throws at one too many, which ends the request. */
export function interimReplies(): () => void {
  let replies = 0;
  return () => {
    replies += 1;
    if (replies > MOST_INTERIM_REPLIES) throw new OverBound(`more than ${MOST_INTERIM_REPLIES} interim replies (1xx)`);
  };
}

/**
 * Returns the result of `work`; or throws the signal's reason, at once. undici observes the signal of a request only when the
 * request has its connection: a host that drops packets would delay it until connecting times out.
 */
export async function untilAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    aborted.reject(signal.reason);
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
