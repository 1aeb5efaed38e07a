import { type HttpReply, type HttpRequest, status } from './control-plane.ts';
import type { Process } from './process.ts';
import { type Server, trusts } from './servers.ts';
import type { World } from './world.ts';

export interface NetworkRequest extends HttpRequest {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request of one process to a host. */
export type Network = (host: string, request: NetworkRequest, signal: AbortSignal) => Promise<HttpReply>;

/** The longest that a call waits by itself: callers give up earlier. */
const NEVER_MS = 10 * 60_000;
/** On a lossy path the API gives no answer to one pass in so many. */
const LOST_ONCE_IN = 3;
/** A late process stands still so long in each tick, while it waits for its probes. */
const LATE_MS = 1_500;
const LATE_AFTER_MS = 500;
const UNTRUSTED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';

/** The network of one process, as far as the CA that it read is trusted. */
export function networkOf(world: World, process: Process, ca: string): Network {
  const { servers, clock } = world;
  const path = pathOf(world, process);
  const send: Network = async (host, request, signal) => {
    const isProbe = request.path.startsWith('/readyz');
    if (!isProbe && path().isLost) await clock.wait(NEVER_MS, signal);
    const server = await connected(world, host, ca, signal);
    const call = {
      process,
      sentAtMs: clock.nowMs,
      sawPause: process.sawPauseIn === process.invocation,
      begunAtMs: process.invokedAtMs,
    };
    const carryOut = () => {
      if (isProbe) return servers.readiness(server);
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
    if (path().isLate) clock.in(LATE_AFTER_MS, () => clock.stall(LATE_MS));
    path().isLate = false;
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

async function connected({ servers, clock }: World, host: string, ca: string, signal: AbortSignal): Promise<Server> {
  const server = servers.reached(host);
  if (server === undefined) {
    await clock.wait(servers.isSilent(host) ? NEVER_MS : 20, signal);
    throw failure('ECONNREFUSED');
  }
  if (!trusts(ca, server.ca)) throw failure(UNTRUSTED);
  return server;
}

/** How the network path and the process are in the invocation of now. */
function pathOf(world: World, process: Process): () => { isLate: boolean; readonly isLost: boolean } {
  const chance = world.chance.of(`path of ${process.name}`);
  const isTick = process.kind === 'endpoints';
  let [invocation, state] = [-1, { isLate: false, isLost: false }];
  return () => {
    if (invocation === process.invocation) return state;
    invocation = process.invocation;
    const isLost = isTick && world.has('lossyPath') && chance.once(LOST_ONCE_IN);
    state = { isLate: isTick && world.has('lateProcesses'), isLost };
    return state;
  };
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
