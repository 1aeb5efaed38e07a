import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import { targetOf } from '../../lib/api-servers/probe-addresses.ts';
import { type ApiServerSpec, type ClusterSpec, LEASE_INTERVALS } from '../../lib/cluster/cluster-spec.ts';
import { ClusterError, type ProbeReply, type ProbeTarget } from '../../lib/kubernetes/cluster-port.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import type { LoadKubeconfig } from '../../lib/runtime/load-kubeconfig.ts';
import { VERSION } from '../../lib/runtime/version.ts';
import { chooseAdvertiseAddress } from '../../lib/spec/host-address.ts';
import { readHostNetwork } from '../../local/host-network.ts';
import { configurationError, usageError } from '../errors.ts';
import { listAddresses } from '../registered.ts';

export type OwnServer = Extract<ApiServerSpec, { address: string }>;

/** The address of the option in its canonical form; `auto` is the one that an API server on this host would publish. */
export function ownAddress(told: string): string {
  if (told !== 'auto') {
    const address = canonicalAddress(told);
    if (address !== undefined) return address;
    throw usageError(`--address ${told} is no IP address: name that of this host, or say auto.`);
  }
  const choice = chooseAdvertiseAddress(readHostNetwork());
  if (!(choice instanceof Error)) return choice.address;
  throw configurationError(`This host has no address to choose: ${choice.message} Name it with --address IP.`);
}

/** The API server of the spec that has the address. @throws CliError when it can have no lease of its own. */
export function ownServer(spec: ClusterSpec, address: string, everyMs: number): OwnServer {
  const { name, endpoints } = spec;
  if (endpoints.reconciler === 'none') {
    throw configurationError(
      `${name} publishes no endpoints (endpoints.reconciler: none): there are no leases to keep.`,
    );
  }
  const server = spec.apiServers.find((one) => 'address' in one && one.address === address);
  if (server === undefined || !('address' in server)) {
    throw configurationError(
      `${address} is no API server of ${name}: ${listAddresses(spec)} To add it, list it in apiServers of its spec and apply that: kbctl cluster apply -f FILE`,
    );
  }
  if (server.kind === 'shared') {
    throw configurationError(
      `${address} stands for several API servers (its spec says shared): a host refreshes the lease of its own address alone.`,
    );
  }
  const longestMs = (endpoints.leaseSeconds * 1000) / LEASE_INTERVALS;
  if (everyMs <= longestMs) return server;
  throw usageError(
    `--every ${everyMs / 1000}s is too seldom for leases of ${endpoints.leaseSeconds} s: at most ${longestMs / 1000}s, or a longer endpoints.leaseSeconds in the spec.`,
  );
}

export type AskReadyz = (signal: AbortSignal) => Promise<ProbeReply>;

/** A renewed certificate is taken up after so long. */
const KUBECONFIG_KEPT_MS = 5 * 60_000;
/** For plain HTTP nothing is needed of a kubeconfig. */
const PLAIN: ApiServerAccess = {
  server: '',
  basePath: '',
  context: '',
  skipTlsVerify: false,
  tls: () => ({ rejectUnauthorized: true }),
  authHeaders: async () => ({}),
};

export interface ReadyzOptions {
  readonly spec: ClusterSpec;
  readonly server: OwnServer;
  /** In place of what the spec says. */
  readonly url?: string;
  readonly loadKubeconfig: LoadKubeconfig;
  readonly nowMs: () => number;
}

/**
 * Asks this host's API server where the spec says that it is probed, with the CA of the kubeconfig.
 * @throws ClusterError when that cannot be read at the start; later the one that was read goes on being used.
 */
export async function readyzOf(options: ReadyzOptions, signal: AbortSignal): Promise<AskReadyz> {
  const { spec, server, url, loadKubeconfig, nowMs } = options;
  const { address, probe } = server;
  const target: ProbeTarget = url === undefined ? targetOf(address, probe, spec) : { url, authenticate: false };
  const isPlain = new URL(target.url).protocol === 'http:';
  let access = isPlain ? PLAIN : await loadKubeconfig(spec, signal).catch(withAdvice);
  let readAtMs = nowMs();
  return async (deadline) => {
    if (!isPlain && nowMs() - readAtMs >= KUBECONFIG_KEPT_MS) {
      access = await loadKubeconfig(spec, deadline).catch(() => access);
      readAtMs = nowMs();
    }
    return httpsProber({ access, deadline, userAgent: `kube-bootstrap-controller/${VERSION} (heartbeat)` })(target);
  };
}

function withAdvice(error: unknown): never {
  if (!(error instanceof ClusterError)) throw error;
  const advice =
    'Its CA is needed to ask the API server: name another with --kubeconfig FILE, or do without with --no-readyz.';
  throw new ClusterError(error.code, `${error.message} ${advice}`, { cause: error });
}
