import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import { targetOf } from '../../lib/api-servers/probe-addresses.ts';
import type { LoadKubeconfig } from '../../lib/aws/stored-kubeconfig.ts';
import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import { ClusterError, type ProbeTarget } from '../../lib/kubernetes/cluster-port.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { VERSION } from '../../lib/runtime/version.ts';
import { type ApiServerSpec, type ClusterSpec, LEASE_INTERVALS } from '../../lib/spec/cluster-spec.ts';
import { configurationError, usageError } from '../errors.ts';
import { listAddresses } from '../registered.ts';

export type OwnServer = Extract<ApiServerSpec, { address: string }>;

export function ownAddress(option: string): string {
  const address = canonicalAddress(option);
  if (address !== undefined) return address;
  throw usageError(`--address ${option} is not an IP address: use the address of this host.`);
}

/** Returns the spec's API server with this address. @throws CliError if an agent cannot refresh the lease of this address */
export function ownServer(spec: ClusterSpec, address: string, everyMs: number): OwnServer {
  const { name, endpoints } = spec;
  if (endpoints.reconciler === 'none') {
    throw configurationError(`${name} publishes no endpoints (endpoints.reconciler: none) and has no leases.`);
  }
  const server = spec.apiServers.find((one) => 'address' in one && one.address === address);
  if (server === undefined || !('address' in server)) {
    const fix = 'To add it, list it in apiServers of the spec and run "kbctl cluster apply -f FILE".';
    throw configurationError(`${address} is not an API server of ${name}: ${listAddresses(spec)} ${fix}`);
  }
  if (server.kind === 'shared') {
    const reason = 'a host can only refresh the lease of its own address';
    throw configurationError(`${address} is shared by several API servers: ${reason}.`);
  }
  const longestMs = (endpoints.leaseSeconds * 1000) / LEASE_INTERVALS;
  if (everyMs <= longestMs) return server;
  const fix = `use at most ${longestMs / 1000}s, or increase endpoints.leaseSeconds in the spec`;
  throw usageError(`--every ${everyMs / 1000}s is too long for leases of ${endpoints.leaseSeconds} s: ${fix}.`);
}

/** Probes the API server with the current spec: the port and the probe may have changed since the agent started. */
export type AskReadyz = (spec: ClusterSpec, server: OwnServer, signal: AbortSignal) => Promise<ProbeReply>;

/** The kubeconfig is read again after this time, because the certificate in the file may have been renewed. */
const KUBECONFIG_KEPT_MS = 5 * 60_000;
const PLAIN: ApiServerAccess = {
  server: '',
  basePath: '',
  context: '',
  ignored: [],
  source: '',
  tls: () => ({ rejectUnauthorized: true }),
  authHeaders: async () => ({}),
};

/** @throws ClusterError if the first read of the kubeconfig fails. After a later failure, the last kubeconfig stays in use. */
export async function readyzOf(
  spec: ClusterSpec,
  server: OwnServer,
  { loadKubeconfig, nowMs, signal }: { loadKubeconfig: LoadKubeconfig; nowMs: () => number; signal: AbortSignal },
): Promise<AskReadyz> {
  const isPlain = (target: ProbeTarget) => new URL(target.url).protocol === 'http:';
  let access = isPlain(targetOf(server.address, server.probe, spec))
    ? PLAIN
    : await loadKubeconfig(spec, signal).catch(withAdvice);
  let readAtMs = nowMs();
  return async (current, { address, probe }, deadline) => {
    const target = targetOf(address, probe, current);
    if (!isPlain(target) && (access === PLAIN || nowMs() - readAtMs >= KUBECONFIG_KEPT_MS)) {
      access = await loadKubeconfig(current, deadline).catch(() => access);
      readAtMs = nowMs();
    }
    return httpsProber({ access, deadline, userAgent: `kube-bootstrap-controller/${VERSION} (heartbeat)` })(target);
  };
}

function withAdvice(error: unknown): never {
  if (!(error instanceof ClusterError)) throw error;
  const advice = 'Its CA is needed to probe the API server: use another one with --kubeconfig FILE.';
  throw new ClusterError(error.code, `${error.message} ${advice}`, { cause: error });
}
