import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { answering, bearerOf, type LocalReply, type LocalRules, listenOnLoopback, refusalOf } from '../local-server.ts';
import type { Identity } from './identity.ts';
import { StatusError } from './resources.ts';
import type { StandInApiServer } from './stand-in-api-server.ts';

/** The API servers of one control plane: each has a loopback port, and all share one store. */
export type ApiServers = Awaited<ReturnType<typeof startApiServers>>;

export async function startApiServers(standIn: StandInApiServer, identity: Identity, addresses: readonly string[]) {
  const servers = new Map<string, ListeningStandIn>();
  const start = async (address: string, port?: number) =>
    void servers.set(address, await listen(standIn, identity, port));
  for (const address of addresses) await start(address);
  const serverOf = (address: string) => {
    const server = servers.get(address);
    if (server === undefined) throw new Error(`${address} is not an API server of this control plane`);
    return server;
  };
  return {
    /** Returns the URL of an API server, `https://127.0.0.1:<port>`, which never changes. */
    urlOf: (address: string) => serverOf(address).url,
    /** Stops an API server as if its host failed: its connections are reset, and new connections are refused. */
    stop: (address: string) => serverOf(address).close(),
    /** Starts a stopped API server again at its port. @throws Error if another process has the port by now */
    start: (address: string) => start(address, Number(new URL(serverOf(address).url).port)),
    /** Closes all API servers. Stopped API servers are already closed. */
    close: async () => void (await Promise.allSettled(addresses.map((address) => serverOf(address).close()))),
  };
}

export type ListeningStandIn = Awaited<ReturnType<typeof listen>>;

/** Paths that a real API server answers without a credential. */
const PUBLIC_PATHS = /^\/(readyz|livez|healthz|version)(\?|$)/;

/** Starts a stand-in on a loopback port (`port` 0: a free port). `url` is `https://127.0.0.1:<port>`. */
export async function listen(
  standIn: Pick<StandInApiServer, 'handle'>,
  { key, certified }: Pick<Identity, 'key' | 'certified'>,
  port = 0,
) {
  const answer = async (request: IncomingMessage): Promise<LocalReply> => {
    const refusal = refusalOf(request, { ...RULES, key, host });
    if (refusal?.status === 415) return refused(415, `${refusal.message} ${NO_PROTOBUF}`);
    if (refusal !== undefined) return refused(refusal.status, refusal.message);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    const { method = 'GET', url = '/' } = request;
    return standIn.handle({ method, path: url, headers, body: await text(request) });
  };
  const { host, close } = await listenOnLoopback(createServer(certified, answering(answer)), port);
  return { url: `https://${host}`, close };
}

const RULES: Omit<LocalRules, 'key' | 'host'> = {
  keyOf: bearerOf,
  mediaTypes: ['application/json', 'application/merge-patch+json', 'application/strategic-merge-patch+json'],
  isPublic: (path) => PUBLIC_PATHS.test(path),
};

const NO_PROTOBUF =
  'kubectl create sends some kinds as protobuf, which this stand-in does not read: use kubectl create -f or kubectl apply -f with a file.';

const REASONS = { 401: 'Unauthorized', 403: 'Forbidden', 415: 'UnsupportedMediaType', 421: 'MisdirectedRequest' };

/** Returns a reply after which the connection closes, because the body of the request is not read. */
function refused(status: keyof typeof REASONS, message: string): LocalReply {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  return { status, headers, body: JSON.stringify(new StatusError(status, REASONS[status], message).status) };
}
