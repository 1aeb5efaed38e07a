import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import type { Transport } from '../kubernetes/transport.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import { tellOnce } from '../kubernetes/warnings.ts';
import type { ClusterAccess, ConnectOptions } from './environment.ts';
import { VERSION } from './version.ts';

export interface ClusterConnectionsOptions {
  readonly nowMs: () => number;
  readonly loadKubeconfig: (spec: ClusterSpec) => Promise<ApiServerAccess>;
}

/** A cluster's way in, as read from its kubeconfig. */
interface Known {
  readonly access: ApiServerAccess;
  readonly readAtMs: number;
  readonly warnOnce: (text: string) => void;
}

const KEEP_MS = 5 * 60_000;
const MOST_KNOWN = 1_000;

/** The clusters of this process: kubeconfigs are read anew every five minutes, and after a credential was refused. */
export class ClusterConnections {
  readonly #options: ClusterConnectionsOptions;
  readonly #connections = new ApiServerConnections();
  readonly #known = new Map<string, Known>();

  constructor(options: ClusterConnectionsOptions) {
    this.#options = options;
  }

  async connect(spec: ClusterSpec, { loop, signal, warn }: ConnectOptions): Promise<ClusterAccess> {
    const key = JSON.stringify([spec.name, spec.kubeconfig]);
    const { access, warnOnce } = await this.#open(key, spec, warn);
    const userAgent = `kube-bootstrap-controller/${VERSION} (${loop})`;
    const transport = this.#forgetWhenRefused(key, this.#connections.transport(access));
    return {
      kubernetes: clusterPort({ transport, server: access.server, deadline: signal, userAgent, warn: warnOnce }),
      probe: httpsProber({ access, deadline: signal, userAgent }),
    };
  }

  /** Ends every connection, once what is under way has ended. */
  async close(): Promise<void> {
    this.#known.clear();
    await this.#connections.close();
  }

  /** Only what was read is kept: a read that hangs or fails is begun anew by the next pass. */
  async #open(key: string, spec: ClusterSpec, warn: (text: string) => void): Promise<Known> {
    const { nowMs, loadKubeconfig } = this.#options;
    const known = this.#known.get(key);
    if (known !== undefined && nowMs() - known.readAtMs < KEEP_MS) return known;
    const access = await loadKubeconfig(spec);
    const opened: Known = { access, readAtMs: nowMs(), warnOnce: known?.warnOnce ?? tellOnce(warn) };
    if (access.skipTlsVerify) opened.warnOnce('the kubeconfig says not to verify the certificate of the API server');
    this.#known.delete(key);
    this.#known.set(key, opened);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return opened;
  }

  #forgetWhenRefused(key: string, transport: Transport): Transport {
    return async (request, signal) => {
      const reply = await transport(request, signal);
      if (reply.status === 401) this.#known.delete(key);
      return reply;
    };
  }
}
