import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { bearerOf, type LocalRules, refusalOf } from '../local-request.ts';
import { answering, type LocalReply, listenOnLoopback } from '../loopback-server.ts';
import type { Identity } from './identity.ts';
import { StatusError } from './resources.ts';
import type { StandInApiServer } from './stand-in-api-server.ts';

/** The API servers of one control plane: each has a loopback port, and all share one store. */
export type ApiServers = Awaited<ReturnType<typeof startApiServers>>;

export async function startApiServers(standIn: StandInApiServer, identity: Identity, addresses: readonly string[]) {
  const urls = new Map<string, string>();
  const listening = new Map<string, ListeningStandIn>();
  const start = async (address: string, port?: number) => {
    const server = await listen(standIn, identity, port);
    listening.set(address, server);
    urls.set(address, server.url);
  };
  for (const address of addresses) await start(address);
  /** Returns the URL of an API server, `https://127.0.0.1:<port>`, which never changes. */
  const urlOf = (address: string) => {
    const url = urls.get(address);
    if (url === undefined) throw new Error(`${address} is not an API server of this control plane`);
    return url;
  };
  /** Stops an API server as if its host failed: its connections are reset, and new connections are refused. */
  const stop = async (address: string) => {
    const server = listening.get(address);
    listening.delete(address);
    await server?.close();
  };
  return {
    urlOf,
    stop,
    /** Starts a stopped API server again at its port. @throws Error if another process has the port by now */
    start: (address: string) => start(address, Number(new URL(urlOf(address)).port)),
    close: async () => void (await Promise.all(addresses.map(stop))),
  };
}

export interface ListeningStandIn {
  /** The URL of the server: `https://127.0.0.1:<port>`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Paths that a real API server answers without a credential. */
const PUBLIC_PATHS = /^\/(readyz|livez|healthz|version)(\?|$)/;

/** Starts a stand-in on a loopback port (`port` 0: a free port). */
export async function listen(
  standIn: Pick<StandInApiServer, 'handle'>,
  { key, certified }: Pick<Identity, 'key' | 'certified'>,
  port = 0,
): Promise<ListeningStandIn> {
  const server = createServer(
    certified,
    answering((request) => answer(standIn, request, { ...RULES, key, host })),
  );
  const { host, close } = await listenOnLoopback(server, port);
  return { url: `https://${host}`, close };
}

const RULES: Omit<LocalRules, 'key' | 'host'> = {
  keyOf: bearerOf,
  mediaTypes: ['application/json', 'application/merge-patch+json', 'application/strategic-merge-patch+json'],
  isPublic: (path) => PUBLIC_PATHS.test(path),
};

async function answer(
  standIn: Pick<StandInApiServer, 'handle'>,
  request: IncomingMessage,
  rules: LocalRules,
): Promise<LocalReply> {
  const refusal = refusalOf(request, rules);
  if (refusal?.status === 415) return refused(415, `${refusal.message} ${NO_PROTOBUF}`);
  if (refusal !== undefined) return refused(refusal.status, refusal.message);
  const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
  const { method = 'GET', url = '/' } = request;
  return standIn.handle({ method, path: url, headers, body: await text(request) });
}

const NO_PROTOBUF =
  'kubectl create sends some kinds as protobuf, which this stand-in does not read: use kubectl create -f or kubectl apply -f with a file.';

const REASONS = { 401: 'Unauthorized', 403: 'Forbidden', 415: 'UnsupportedMediaType', 421: 'MisdirectedRequest' };

/** Returns a reply after which the connection closes, because the body of the request is not read. */
function refused(status: keyof typeof REASONS, message: string): LocalReply {
  const headers = { 'content-type': 'application/json', connection: 'close' };
  return { status, headers, body: JSON.stringify(new StatusError(status, REASONS[status], message).toStatus()) };
}
