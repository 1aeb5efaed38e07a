import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { CallOptions } from '../kubernetes/api-calls.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { type CredentialEnd, credentialEnds, endsSoon } from '../kubernetes/credential-end.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { tellOnce } from '../kubernetes/replies.ts';
import { BytesInFlight } from '../kubernetes/reply-bounds.ts';
import type { Transport } from '../kubernetes/transport.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import type { ClusterAccess, ConnectOptions } from '../runtime/environment.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';
import { VERSION } from '../runtime/version.ts';

export interface ClusterConnectionsOptions {
  readonly nowMs: () => number;
  readonly loadKubeconfig: LoadKubeconfig;
  /** Waits between the tries of a call. Default: a timer. */
  readonly sleep?: CallOptions['sleep'];
}

/** A cluster's way in, as read from its kubeconfig. */
interface Known {
  readonly access: ApiServerAccess;
  readonly readAtMs: number;
  readonly warnOnce: (text: string) => void;
  readonly ends: readonly CredentialEnd[];
}

const KEEP_MS = 5 * 60_000;
/** A store is asked at most so often on behalf of a server that is not reached: each time costs. */
const STORE_PAUSE_MS = 60_000;
const MOST_KNOWN = 1_000;

/**
 * The clusters of this process. Kubeconfigs are read anew every five minutes; once within a pass whose credential was
 * refused, which then goes on with the new one; and for the next pass after the server was not reached. Whoever corrects
 * or renews a kubeconfig need not wait.
 */
export class ClusterConnections {
  readonly #options: ClusterConnectionsOptions;
  readonly #connections = new ApiServerConnections();
  readonly #inFlight = new BytesInFlight();
  readonly #known = new Map<string, Known>();

  constructor(options: ClusterConnectionsOptions) {
    this.#options = options;
  }

  async connect(spec: ClusterSpec, { loop, signal, warn }: ConnectOptions): Promise<ClusterAccess> {
    const opening: Opening = { key: JSON.stringify([spec.name, spec.kubeconfig]), spec, signal, warn };
    const kept = this.#kept(opening.key);
    const opened = kept ?? (await this.#open(opening));
    const { access, warnOnce, ends } = opened;
    const userAgent = `kube-bootstrap-controller/${VERSION} (${loop})`;
    const transport = this.#renewing(opening, opened, kept !== undefined);
    const { sleep } = this.#options;
    const inFlight = this.#inFlight;
    const call = {
      transport,
      server: access.server,
      deadline: signal,
      inFlight,
      ...(sleep !== undefined && { sleep }),
    };
    return {
      kubernetes: clusterPort({ ...call, userAgent, warn: warnOnce }),
      probe: httpsProber({ access, deadline: signal, userAgent }),
      credentialEndsSoon: ends.some((end) => endsSoon(end, this.#options.nowMs())),
    };
  }

  /** Ends every connection, once what is under way has ended. */
  async close(): Promise<void> {
    this.#known.clear();
    await this.#connections.close();
  }

  #kept(key: string): Known | undefined {
    const known = this.#known.get(key);
    return known !== undefined && this.#options.nowMs() - known.readAtMs < KEEP_MS ? known : undefined;
  }

  /** Only what was read is kept: a read that hangs or fails is begun anew by the next pass. */
  async #open({ key, spec, signal, warn }: Opening): Promise<Known> {
    const { nowMs, loadKubeconfig } = this.#options;
    const access = await loadKubeconfig(spec, signal);
    const warnOnce = this.#known.get(key)?.warnOnce ?? tellOnce(warn);
    const ends = await credentialEnds(access);
    const opened: Known = { access, readAtMs: nowMs(), warnOnce, ends };
    for (const end of ends) if (endsSoon(end, nowMs())) warnOnce(endText(end));
    if (access.skipTlsVerify) opened.warnOnce('the kubeconfig says not to verify the certificate of the API server');
    this.#known.delete(key);
    this.#known.set(key, opened);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return opened;
  }

  /** `mayBeOld`: it was not read for this pass. */
  #renewing(opening: Opening, opened: Known, mayBeOld: boolean): Transport {
    const first = this.#connections.transport(opened.access);
    let renewed: Promise<Transport> | undefined;
    return async (request, signal) => {
      try {
        const current = await (renewed ?? first);
        const reply = await current(request, signal);
        if (reply.status !== 401) return reply;
        // A credential that was read just now and is refused: what the next pass reads may be better.
        if (!mayBeOld || current !== first) {
          this.#forget(opening.key);
          return reply;
        }
        renewed ??= this.#open(opening).then(({ access }) => this.#connections.transport(access), refusedAndUnread);
        const next = await (await renewed)(request, signal);
        if (next.status === 401) this.#forget(opening.key);
        return next;
      } catch (error) {
        if ('file' in opening.spec.kubeconfig || this.#age(opening.key) >= STORE_PAUSE_MS) this.#forget(opening.key);
        throw error;
      }
    };
  }

  #age(key: string): number {
    return this.#options.nowMs() - (this.#known.get(key)?.readAtMs ?? Number.NEGATIVE_INFINITY);
  }

  /** What it warned of stays told. */
  #forget(key: string): void {
    const known = this.#known.get(key);
    if (known !== undefined) this.#known.set(key, { ...known, readAtMs: Number.NEGATIVE_INFINITY });
  }
}

interface Opening {
  readonly key: string;
  readonly spec: ClusterSpec;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
}

function endText({ what, endsMs }: CredentialEnd): string {
  return `the ${what} of the kubeconfig ends at ${new Date(endsMs).toISOString()}: renew it as docs/kubeconfig-secret.md says`;
}

function refusedAndUnread(error: unknown): never {
  if (!(error instanceof ClusterError)) throw error;
  const message = `The API server refused the credential, and the kubeconfig cannot be read anew: ${error.message}`;
  throw new ClusterError(error.code, message, { cause: error });
}
