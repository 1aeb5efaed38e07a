import { isHostOf, targetOf } from '../api-servers/probe-addresses.ts';
import { type ClusterSpec, isDnsName } from '../cluster/cluster-spec.ts';
import { hostOf } from '../cluster/hosts.ts';
import { probeOutcome } from '../endpoints/probe-outcome.ts';
import { ClusterError, type Prober, type ProbeTarget } from '../kubernetes/cluster-port.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { networkFaultOf } from '../kubernetes/network-fault.ts';
import type { ApiRequest, OpenReply, Transport } from '../kubernetes/transport.ts';

/** The most other servers to try: each costs a connection in each pass while the kubeconfig's server is down. */
const MOST_OTHERS = 16;
/** The kubeconfig's server is abandoned after this time, which leaves time for another one in a pass of 9 s. */
const FIRST_ANSWER_MS = 3_000;

/**
 * Returns the probes of the API servers that may receive the kubeconfig's credential: at an address or host of an API
 * server in the spec, with a certificate of the kubeconfig's CA for the kubeconfig's server name. Returns none for a
 * token for one server, without verification, and behind a path, which only a proxy has.
 */
export function otherServers(spec: ClusterSpec, access: ApiServerAccess): readonly ProbeTarget[] {
  const { server, basePath, isForServerAlone, skipTlsVerify } = access;
  if (isForServerAlone || skipTlsVerify || basePath !== '' || !server.startsWith('https:')) return [];
  const serverName = serverNameOf(access);
  return spec.apiServers
    .flatMap((apiServer): ProbeTarget[] => {
      if ('host' in apiServer && !isDnsName(apiServer)) return [];
      const { url } = targetOf('address' in apiServer ? apiServer.address : apiServer.host, apiServer.probe, spec);
      const { origin, protocol } = new URL(url);
      const isOther = protocol === 'https:' && origin !== server && isHostOf(spec, url);
      return isOther ? [{ url, serverName, authenticate: false }] : [];
    })
    .slice(0, MOST_OTHERS);
}

function serverNameOf({ tls, server }: ApiServerAccess): string {
  return tls().servername ?? hostOf(new URL(server));
}

/** Returns the first that answers, with the CA, server name and credential of the kubeconfig. */
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
 * Returns a transport that uses the server that `find` returns for the rest of the pass once `first` gives no answer.
 * It repeats only requests that cannot have been carried out; the caller repeats others.
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
      if (deadline.aborted || !isNoAnswer(error)) throw error;
      other ??= find();
      const next = await other;
      if (next === undefined || signal.aborted || !isUnsent(request, error)) throw error;
      return next(request, signal);
    }
  };
}

/** The body may take longer. */
async function answerInTime(transport: Transport, request: ApiRequest, signal: AbortSignal): Promise<OpenReply> {
  const limit = new AbortController();
  const tooLate = new Error(`no answer within ${FIRST_ANSWER_MS} ms`);
  const timer = setTimeout(() => limit.abort(tooLate), FIRST_ANSWER_MS);
  try {
    return await transport(request, AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

function isNoAnswer(error: unknown): boolean {
  return !(error instanceof ClusterError) && networkFaultOf(error) !== 'tls';
}

function isUnsent({ method }: ApiRequest, error: unknown): boolean {
  const fault = networkFaultOf(error);
  return method === 'GET' || fault === 'notSent' || fault === 'silent';
}
