import type { HttpRequest } from '../../lib/kubernetes/http-client.ts';
import type { ServerReply } from '../support/object-server.ts';
import type { Chance } from './clock.ts';
import { statusReply } from './control-plane.ts';
import type { Exchanged, Process } from './process.ts';
import { type Server, trusts } from './servers.ts';
import type { World } from './world.ts';

export type Network = (host: string, request: HttpRequest, signal: AbortSignal) => Promise<ServerReply>;

/** The longest time that a call waits by itself. Callers give up earlier. */
const NEVER_MS = 10 * 60_000;
/** While a network path is lossy, one in this many passes gets no answer from the API. */
const LOST_ONCE_IN = 3;
const LOST_ONCE_IN_TROUBLE = 2;
/** The time for which a late process stands still in each tick while it waits for its probes. */
const LATE_MS = 1_500;
const LATE_AFTER_MS = 500;
export const LONGEST_LIST_MS = 40_000;
const LONGEST_READ_MS = 4_000;
const LIST_OF_SERVICES = /^\/api\/v1\/services\b/;
const BROKEN_ONCE_IN = 3;
const UNTRUSTED = 'UNABLE_TO_VERIFY_LEAF_SIGNATURE';

/** Returns the network of one process, which reaches the servers that its CA trusts. */
export function networkOf(world: World, process: Process, ca: string): Network {
  const { servers, clock } = world;
  const path = pathOf(world, process);
  const chance = world.chance.of(`reads of ${process.name} from ${process.invocation}`);
  const send: Network = async (host, request, signal) => {
    const isProbe = request.path.startsWith('/readyz');
    if (isProbe ? servers.areProbesCut : path().isLost) await clock.wait(NEVER_MS, signal);
    const server = await connected(world, host, ca, signal);
    const call = process.call();
    const carryOut = () => {
      if (isProbe) return servers.readiness(server);
      if (!server.tokens.has(request.headers['authorization'] ?? '')) return statusReply(401, 'Unauthorized', 'who?');
      const reply = world.endpoints.during(call, () => server.plane.answer(request, process.name));
      const servedAtMs = server.plane.nowMs?.();
      return servedAtMs === undefined ? reply : { ...reply, date: new Date(servedAtMs).toUTCString() };
    };
    sendLate(world, process, request, carryOut);
    const slow = slownessOf(world, request, chance);
    if (slow.beforeMs > 0) await clock.wait(slow.beforeMs, signal);
    const answer = await process.exchange(carryOut, { signal, timeoutMs: NEVER_MS });
    if (slow.afterMs > 0) await clock.wait(slow.afterMs, signal);
    const reply = replyIn(answer);
    return world.has('brokenLists') ? broken(chance, world, request, reply) : reply;
  };
  return async (host, request, signal) => {
    if (!request.path.startsWith('/readyz')) return send(host, request, signal);
    if (path().isLate) clock.in(LATE_AFTER_MS, () => clock.stall(LATE_MS));
    path().isLate = false;
    const { stalls } = clock;
    if (process.kind === 'endpoints') world.endpoints.probing(process, host);
    const probed = (answer?: number) => {
      world.endpoints.probed(process, host, { status: answer, isLate: clock.stalls !== stalls });
    };
    try {
      const reply = await send(host, request, signal);
      probed(reply.status);
      return reply;
    } catch (error) {
      // An error with a kubeconfig that is no longer in the secret does not show a fault of the server.
      const isOldKubeconfig = error instanceof Error && error.message === UNTRUSTED && servers.isTrusted(host);
      if (!isOldKubeconfig) probed();
      throw error;
    }
  };
}

function replyIn(answer: Exchanged<ServerReply>): ServerReply {
  if (answer.outcome === 'reply') return answer.reply;
  if (answer.outcome === 'noReply') throw failure('ECONNRESET');
  return answer.by === 'throttled'
    ? statusReply(429, 'TooManyRequests', 'later')
    : statusReply(500, 'InternalError', 'etcd');
}

/**
 * Carries out a write of Endpoints or slices later, if an incident requests that.
 * @throws if the write is delayed, because its sender has ended
 */
function sendLate(
  world: World,
  process: Process,
  { method, path, body }: HttpRequest,
  carryOut: () => ServerReply,
): void {
  const [, kind] = /\/(endpoints|endpointslices)\b/.exec(path) ?? [];
  if ((method !== 'PUT' && method !== 'POST') || kind === undefined) return;
  const lateMs = world.servers.delayOfWrite?.(kind, body ?? '');
  if (lateMs === undefined) return;
  world.clock.in(lateMs, () => void carryOut());
  // A sender that only stood still would take its later probes for silent servers, which excuses the late write.
  process.end();
  throw failure('ECONNRESET');
}

function broken(chance: Chance, { isFaulty }: World, { method }: HttpRequest, reply: ServerReply): ServerReply {
  const isList = method === 'GET' && typeof reply.body === 'object' && 'items' in reply.body;
  if (!isList || !isFaulty || !chance.once(BROKEN_ONCE_IN)) return reply;
  const text = JSON.stringify(reply.body);
  const { items, ...list } = JSON.parse(text);
  const some = items.slice(0, chance.pick(items.length));
  switch (chance.pick(5)) {
    case 0:
      return statusReply(410, 'Expired', 'The provided continue parameter is too old');
    case 1:
      return statusReply(429, 'TooManyRequests', 'later');
    case 2:
      return { status: 200, body: text.slice(0, chance.pick(text.length)) };
    case 3:
      return { status: 200, body: { ...list, items: some, metadata: { ...list.metadata, continue: 'next' } } };
    default:
      return { status: 200, body: { ...list, items: some, metadata: {} } };
  }
}

/** Returns the delays of a read. A list is delayed after it was carried out, so it has the items of that earlier time. */
function slownessOf(world: World, { method, path }: HttpRequest, chance: Chance) {
  const isSlow = world.isFaulty && world.has('slowReads') && method === 'GET' && !path.startsWith('/readyz');
  if (!isSlow) return { beforeMs: 0, afterMs: 0 };
  if (LIST_OF_SERVICES.test(path)) return { beforeMs: 0, afterMs: chance.pick(LONGEST_LIST_MS) };
  return { beforeMs: chance.once(5) ? chance.pick(LONGEST_READ_MS) : 0, afterMs: 0 };
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

/** Returns a function that gives the state of the network path and of the process in the current invocation. */
function pathOf(world: World, process: Process): () => { isLate: boolean; readonly isLost: boolean } {
  const chance = world.chance.of(`path of ${process.name} from ${process.invocation}`);
  const isTick = process.kind === 'endpoints';
  let [invocation, state] = [-1, { isLate: false, isLost: false }];
  return () => {
    if (invocation === process.invocation) return state;
    invocation = process.invocation;
    const isLost =
      isTick && world.has('lossyPath') && chance.once(world.isFaulty ? LOST_ONCE_IN_TROUBLE : LOST_ONCE_IN);
    state = { isLate: isTick && world.has('lateProcesses'), isLost };
    return state;
  };
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
