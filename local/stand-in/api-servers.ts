import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type LocalRules, refusalOf } from '../local-request.ts';
import type { Identity } from './identity.ts';
import { StatusError } from './resources.ts';
import type { StandInApiServer, StandInReply } from './stand-in-api-server.ts';

interface ApiServer {
  readonly url: string;
  /** Absent: the server is stopped, and its port does not answer. */
  listening?: ListeningStandIn;
}

/** The API servers of one control plane: each has a loopback port, and all share one store. */
export class ApiServers {
  readonly #standIn: StandInApiServer;
  readonly #identity: Identity;
  readonly #byAddress = new Map<string, ApiServer>();

  private constructor(standIn: StandInApiServer, identity: Identity) {
    this.#standIn = standIn;
    this.#identity = identity;
  }

  /** Starts one API server per published address. */
  static async listen(
    standIn: StandInApiServer,
    identity: Identity,
    addresses: readonly string[],
  ): Promise<ApiServers> {
    const servers = new ApiServers(standIn, identity);
    for (const address of addresses) {
      const listening = await listen(standIn, identity);
      servers.#byAddress.set(address, { url: listening.url, listening });
    }
    return servers;
  }

  /** Returns `https://127.0.0.1:<port>`, which never changes. */
  urlOf(address: string): string {
    return this.#named(address).url;
  }

  /** Stops it like a failing host: connections break off, and new ones are refused. */
  async stop(address: string): Promise<void> {
    const server = this.#named(address);
    const { listening } = server;
    delete server.listening;
    await listening?.close();
  }

  /** @throws Error when another process has its port by now. */
  async start(address: string): Promise<void> {
    const server = this.#named(address);
    server.listening ??= await listen(this.#standIn, this.#identity, Number(new URL(server.url).port));
  }

  async close(): Promise<void> {
    for (const address of this.#byAddress.keys()) await this.stop(address);
  }

  #named(address: string): ApiServer {
    const server = this.#byAddress.get(address);
    if (server === undefined) throw new Error(`${address} is not an API server of this control plane`);
    return server;
  }
}

export interface ListeningStandIn {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  close(): Promise<void>;
}

/** Paths that a real API server answers without a credential. */
const PUBLIC_PATHS = /^\/(readyz|livez|healthz|version)(\?|$)/;

/** Starts a stand-in on a loopback port (`port` 0: a free one). */
export async function listen(
  standIn: Pick<StandInApiServer, 'handle'>,
  { key, certified }: Pick<Identity, 'key' | 'certified'>,
  port = 0,
): Promise<ListeningStandIn> {
  const server = createServer(certified, (request, response) => {
    answer(standIn, request, { ...RULES, key, host: `127.0.0.1:${portOf()}` })
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  const portOf = () => (server.address() as AddressInfo).port;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `https://127.0.0.1:${portOf()}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

const RULES: Omit<LocalRules, 'key' | 'host'> = {
  keyOf: ({ headers: { authorization = '' } }) => /^Bearer (\S+)$/.exec(authorization)?.[1],
  mediaTypes: ['application/json', 'application/merge-patch+json', 'application/strategic-merge-patch+json'],
  isPublic: (path) => PUBLIC_PATHS.test(path),
};

async function answer(
  standIn: Pick<StandInApiServer, 'handle'>,
  request: IncomingMessage,
  rules: LocalRules,
): Promise<StandInReply> {
  const refusal = refusalOf(request, rules);
  if (refusal?.status === 415) return refused(415, `${refusal.message} ${NO_PROTOBUF}`);
  if (refusal !== undefined) return refused(refusal.status, refusal.message);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const { method = 'GET', url = '/' } = request;
  return standIn.handle({ method, path: url, headers, body: Buffer.concat(chunks).toString() });
}

const NO_PROTOBUF =
  'kubectl create sends some kinds as protobuf, which this stand-in does not read: use kubectl create -f or kubectl apply -f with a file.';

const REASONS = { 401: 'Unauthorized', 403: 'Forbidden', 415: 'UnsupportedMediaType', 421: 'MisdirectedRequest' };

/** Closes the connection without reading the body of the request. */
function refused(status: keyof typeof REASONS, message: string): StandInReply {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  return { status, headers, body: JSON.stringify(new StatusError(status, REASONS[status], message).toStatus()) };
}
