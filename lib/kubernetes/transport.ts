import { createHash } from 'node:crypto';
import { Agent } from 'undici';
import { heedSignal } from './heed-signal.ts';
import type { ApiServerAccess } from './kubeconfig.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With the query, `/api/v1/services?limit=2000`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface ApiReply {
  readonly status: number;
  /** Names in lower case; what was sent several times is joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * One HTTP exchange with an API server; the credential is the transport's own business. Answers whatever the status
 * is; throws when there is no whole reply, and as soon as the signal is aborted.
 */
export type Transport = (request: ApiRequest, signal: AbortSignal) => Promise<ApiReply>;

/** Idle connections outlive two ticks of the endpoints loop, and are given up before load balancers (60 s) drop them. */
const KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
const CONNECTIONS_PER_SERVER = 4;
const LARGEST_REPLY = 256 * 1024 * 1024;
const MOST_POOLS = 100;

function agentFor(access: ApiServerAccess): Agent {
  return new Agent({
    allowH2: false,
    connections: CONNECTIONS_PER_SERVER,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxResponseSize: LARGEST_REPLY,
    connect: { ...access.tls(), timeout: CONNECT_TIMEOUT_MS },
  });
}

/** The client certificate speaks for every request of a connection: who has another one gets other connections. */
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
    if (value !== undefined) {
      result[name] = Array.isArray(value) ? value.join(', ') : value;
    }
  }
  return result;
}

function transportOver(agent: Agent, access: ApiServerAccess): Transport {
  return ({ method, path, headers, body }, signal) =>
    heedSignal(signal, async () => {
      const reply = await agent.request({
        origin: access.server,
        path: `${access.basePath}${path}`,
        method,
        headers: { ...headers, ...(await access.authHeaders()) },
        body: body ?? null,
        signal,
      });
      const bytes = await reply.body.bytes();
      return { status: reply.statusCode, headers: joined(reply.headers), body: bytes };
    });
}

/** The connections of this process: one pool for each API server and client certificate, used by every pass. */
export class ApiServerConnections {
  readonly #agents = new Map<string, Agent>();

  transport(access: ApiServerAccess): Transport {
    const key = poolKey(access);
    const agent = this.#agents.get(key) ?? agentFor(access);
    this.#agents.delete(key);
    this.#agents.set(key, agent);
    this.#forgetLeastUsed();
    return transportOver(agent, access);
  }

  /** Lets what is under way end, then closes every connection. */
  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all(agents.map((agent) => agent.close()));
  }

  /** Forgotten, not closed: a pass may still hold it. Its idle connections end by themselves. */
  #forgetLeastUsed(): void {
    const [oldest] = this.#agents.keys();
    if (this.#agents.size > MOST_POOLS && oldest !== undefined) {
      this.#agents.delete(oldest);
    }
  }
}
