import { type HttpReply, type HttpRequest, status } from './control-plane.ts';
import type { Process } from './process.ts';
import { trusts } from './servers.ts';
import type { World } from './world.ts';

export interface NetworkRequest extends HttpRequest {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request of one process to a host. */
export type Network = (host: string, request: NetworkRequest, signal: AbortSignal) => Promise<HttpReply>;

/** The longest that a call waits by itself: callers give up earlier. */
const NEVER_MS = 10 * 60_000;
const UNTRUSTED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';

/** The network of one process, as far as the CA that it read is trusted. */
export function networkOf(world: World, process: Process, ca: string): Network {
  const { servers, clock } = world;
  const send: Network = async (host, request, signal) => {
    const server = servers.reached(host);
    if (server === undefined) {
      await clock.wait(servers.isSilent(host) ? NEVER_MS : 20, signal);
      throw failure('ECONNREFUSED');
    }
    if (!trusts(ca, server.ca)) throw failure(UNTRUSTED);
    const call = { process, sentAtMs: clock.nowMs, sawPause: process.sawPauseIn === process.invocation };
    const carryOut = () => {
      if (request.path.startsWith('/readyz')) return servers.readiness(server);
      if (!server.tokens.has(request.headers?.['authorization'] ?? '')) return status(401, 'Unauthorized', 'who?');
      return world.endpoints.during(call, () => server.plane.answer(request, process.name));
    };
    const answer = await process.exchange(carryOut, signal, NEVER_MS);
    if (answer.outcome === 'reply') return answer.reply;
    if (answer.outcome === 'noReply') throw failure('ECONNRESET');
    return answer.by === 'throttled' ? status(429, 'TooManyRequests', 'later') : status(500, 'InternalError', 'etcd');
  };
  return async (host, request, signal) => {
    if (!request.path.startsWith('/readyz')) return send(host, request, signal);
    const { stalls } = clock;
    const probed = (answer?: number) => {
      // A process that was late itself has seen nothing.
      if (answer !== undefined || clock.stalls === stalls) world.endpoints.probed(process, host, answer);
    };
    try {
      const reply = await send(host, request, signal);
      probed(reply.status);
      return reply;
    } catch (error) {
      // A kubeconfig that the secret no longer has proves nothing of the server.
      const isOldKubeconfig = error instanceof Error && error.message === UNTRUSTED && servers.isTrusted(host);
      if (!isOldKubeconfig) probed();
      throw error;
    }
  };
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
