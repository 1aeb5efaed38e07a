import { parseAddress } from '../allocator/ip-address.ts';
import { isHostOf, targetOf } from '../api-servers/probe-addresses.ts';
import { ClusterError, type ControlPlane, type Prober, type ProbeTarget } from '../kubernetes/cluster-port.ts';
import type { HttpReply } from '../kubernetes/http-client.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { networkFaultOf } from '../kubernetes/network-fault.ts';
import type { ApiRequest, Transport } from '../kubernetes/transport.ts';
import { probeOutcome } from '../leases/probe-outcome.ts';
import { type ClusterSpec, isDnsName, type Loop } from '../spec/cluster-spec.ts';
import { hostOf } from '../util/hosts.ts';

/** The kubeconfig of one pass, which may become outdated during the pass. */
export interface PassKubeconfig {
  readonly current: () => ApiServerAccess;
  /** Returns a newer kubeconfig; `undefined` if `used` was read in this pass, or if it is too early to read again. */
  readonly newerThan: (used: ApiServerAccess) => Promise<ApiServerAccess | undefined>;
  /** Lets the next pass read the kubeconfig again, if the last read was long enough ago. */
  readonly forget: () => void;
  /** Records a failed verification at the URL. Returns true if an outdated kubeconfig cannot be the cause. */
  readonly isProvenAgainst: (url: string) => boolean;
  readonly confirm: ControlPlane['confirm'];
}

/**
 * Returns a transport that repeats a request with a newer kubeconfig after a 401 or a failed certificate verification. After
 * a failed verification, later requests with the same kubeconfig fail without a connection, because verifying a long chain takes
 * 0.5 s of CPU time.
 */
export function renewingTransport(
  kubeconfig: PassKubeconfig,
  transportOf: (access: ApiServerAccess) => Transport,
): Transport {
  const untrusted = new Map<ApiServerAccess, unknown>();
  const send = async (access: ApiServerAccess, ...[request, signal]: Parameters<Transport>) => {
    if (untrusted.has(access)) throw untrusted.get(access);
    try {
      return await transportOf(access)(request, signal);
    } catch (error) {
      if (networkFaultOf(error) === 'tls') untrusted.set(access, error);
      throw error;
    }
  };
  return async (request, signal) => {
    const used = kubeconfig.current();
    try {
      const reply = await send(used, request, signal);
      if (reply.status !== 401) return reply;
      const newer = await kubeconfig.newerThan(used).catch(refusedAndUnread);
      const again = newer === undefined ? reply : await inPlaceOf(reply, () => send(newer, request, signal));
      if (again.status === 401) kubeconfig.forget();
      return again;
    } catch (error) {
      const newer = untrusted.has(used) ? await kubeconfig.newerThan(used).catch(() => undefined) : undefined;
      const again = newer === undefined ? Promise.reject(error) : send(newer, request, signal);
      return again.catch((last: unknown) => {
        kubeconfig.forget();
        throw last;
      });
    }
  };
}

/** Ends the body of a reply, which would otherwise block the connection. Returns the result of `work` in place of the reply. */
async function inPlaceOf({ body }: HttpReply, work: () => Promise<HttpReply>): Promise<HttpReply> {
  for await (const piece of body) if (piece.length > 0) break;
  return work();
}

function refusedAndUnread(error: unknown): never {
  if (!(error instanceof ClusterError)) throw error;
  const message = `The API server refused the credential, and the kubeconfig cannot be read again: ${error.message}`;
  throw new ClusterError(error.code, message, { cause: error });
}

/** Returns a prober that probes again with a newer kubeconfig after a failed certificate verification or a 401. */
export function renewingProber(kubeconfig: PassKubeconfig, proberOf: (access: ApiServerAccess) => Prober): Prober {
  return async (target, signal) => {
    const used = kubeconfig.current();
    const reply = await proberOf(used)(target, signal);
    const isRefused = reply.kind === 'status' && reply.status === 401 && target.authenticate !== false;
    if (reply.kind !== 'tlsFailure' && !isRefused) return reply;
    const newer = await kubeconfig.newerThan(used).catch(() => undefined);
    const last = newer === undefined ? reply : await proberOf(newer)(target, signal);
    if (last.kind !== 'tlsFailure' || kubeconfig.isProvenAgainst(target.url)) return last;
    const message = `TLS failed (${last.message}), which counts once the kubeconfig has been read again`;
    return { kind: 'unknown', message };
  };
}

/** The maximum number of other API servers that a pass tries. In an outage, each of them adds a connection to every pass. */
const MOST_OTHERS = 16;
/** The longest wait for the answer of the kubeconfig's server. It leaves a pass of 9 s enough time to use another server. */
const FIRST_ANSWER_MS = 3_000;

/**
 * Loops that may use another API server of the spec. A repair must not use another: an API server of a former control plane does
 * not list all Services, and the repair would free the addresses and ports of the unlisted Services.
 */
export const MAY_USE_ANOTHER: ReadonlySet<Loop> = new Set(['kubernetes-service', 'system-namespaces']);

/** The first segments of the paths at which API servers report their health. Any other path may belong to a proxy. */
const HEALTH_PATHS: ReadonlySet<string | undefined> = new Set(['readyz', 'livez', 'healthz']);

/**
 * Returns the probes of at most 16 other API servers that may receive the kubeconfig's credential: their host is in the spec, or
 * their `probe.url` answered in this pass. Each probe verifies the certificate by the CA and server name of the kubeconfig.
 * Returns none if the token is for one server only, or if the kubeconfig disables verification or its URL has a path (a proxy).
 */
export function otherServers(
  spec: ClusterSpec,
  access: ApiServerAccess,
  answered: Pick<ReadonlySet<string>, 'has'> = new Set(),
): readonly ProbeTarget[] {
  const { server, basePath, isIssuedForServer, tls } = access;
  if (isIssuedForServer || !tls().rejectUnauthorized || basePath !== '' || !server.startsWith('https:')) return [];
  const serverName = serverNameOf(access);
  return spec.apiServers
    .flatMap((apiServer): ProbeTarget[] => {
      if ('host' in apiServer && !isDnsName(apiServer)) return [];
      const target = targetOf('address' in apiServer ? apiServer.address : apiServer.host, apiServer.probe, spec);
      const { url } = target;
      const { origin, protocol, pathname } = new URL(url);
      const isKnown = isHostOf(spec, url) || (answered.has(url) && HEALTH_PATHS.has(pathname.split('/')[1]));
      const isOther = protocol === 'https:' && origin !== server && isKnown;
      return isOther ? [{ ...target, serverName, authenticate: false }] : [];
    })
    .slice(0, MOST_OTHERS);
}

/** Returns whether a loop can use another API server. Assumes that all certificates have the kubeconfig's server name. */
export function hasFallBack(loop: Loop, spec: ClusterSpec, access: ApiServerAccess): boolean {
  const answered = loop === 'kubernetes-service' ? { has: () => true } : undefined;
  const isForAll = parseAddress(serverNameOf(access)) === undefined;
  return MAY_USE_ANOTHER.has(loop) && isForAll && otherServers(spec, access, answered).length > 0;
}

function serverNameOf({ tls, server }: ApiServerAccess): string {
  return tls().servername ?? hostOf(new URL(server));
}

/** Returns access to the first server that is ready or alive, with the CA, server name and credential of the kubeconfig. */
export async function answeringServer(
  targets: readonly ProbeTarget[],
  access: ApiServerAccess,
  probe: Prober,
): Promise<ApiServerAccess | undefined> {
  const answering = targets.map(async (target) => {
    const { verdict } = probeOutcome(await probe(target));
    if (verdict !== 'ready' && verdict !== 'alive') throw new Error(`${target.url} is not ready`);
    return new URL(target.url).origin;
  });
  const server = await Promise.any(answering).catch(() => undefined);
  const servername = serverNameOf(access);
  return server === undefined ? undefined : { ...access, server, tls: () => ({ ...access.tls(), servername }) };
}

/**
 * Returns a transport that uses `first`. After a 5xx or a missing answer, it uses the result of `find` for the rest of the pass.
 * Repeats a request without an answer only if the request is a GET or was not sent. The caller repeats other requests.
 */
export function orOther(
  first: Transport,
  deadline: AbortSignal,
  find: () => Promise<Transport | undefined>,
): Transport {
  let other: Promise<Transport | undefined> | undefined;
  return async (request, signal) => {
    if (other !== undefined) return ((await other) ?? first)(request, signal);
    try {
      const reply = await answerInTime(first, request, signal);
      if (reply.status >= 500) other ??= find();
      return reply;
    } catch (error) {
      if (deadline.aborted || error instanceof ClusterError || networkFaultOf(error) === 'tls') throw error;
      other ??= find();
      const next = await other;
      if (next === undefined || signal.aborted || !isUnsent(request, error)) throw error;
      return next(request, signal);
    }
  };
}

/** Returns the reply if its headers arrive in time. The body may take longer. */
async function answerInTime(transport: Transport, request: ApiRequest, signal: AbortSignal): Promise<HttpReply> {
  const limit = new AbortController();
  const tooLate = new Error(`no answer within ${FIRST_ANSWER_MS} ms`);
  const timer = setTimeout(() => limit.abort(tooLate), FIRST_ANSWER_MS);
  try {
    return await transport(request, AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

function isUnsent({ method }: ApiRequest, error: unknown): boolean {
  const fault = networkFaultOf(error);
  return method === 'GET' || fault === 'notSent' || fault === 'silent';
}
