import { targetOf } from '../../lib/api-servers/probe-addresses.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { LoadKubeconfig } from '../../lib/dispatch/load-kubeconfig.ts';
import { VERSION } from '../../lib/dispatch/version.ts';
import { ClusterError, type ProbeReply, type ProbeTarget } from '../../lib/kubernetes/cluster-port.ts';
import { httpsProber } from '../../lib/kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import type { OwnServer } from './own-server.ts';

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
