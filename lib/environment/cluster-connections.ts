import { createHash } from 'node:crypto';
import { setTimeout as timer } from 'node:timers/promises';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { CallOptions } from '../kubernetes/api-calls.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { type CredentialEnd, credentialEnds, endsSoon } from '../kubernetes/credential-end.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { BytesInFlight } from '../kubernetes/reply-bounds.ts';
import { ApiServerConnections, type Transport } from '../kubernetes/transport.ts';
import type { ClusterAccess, ConnectOptions } from '../runtime/environment.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';
import { VERSION } from '../runtime/version.ts';

export interface ClusterConnectionsOptions {
  readonly nowMs: () => number;
  readonly loadKubeconfig: LoadKubeconfig;
  /** Waits between the tries of a call, and before a read. Default: a timer. */
  readonly sleep?: CallOptions['sleep'];
  /** From 0 to 1, for how long a kubeconfig is kept. Default: `Math.random`. */
  readonly random?: () => number;
}

/** What was read of a cluster's kubeconfig. */
interface KnownKubeconfig {
  readonly access: ApiServerAccess;
  /** Of its URL and CA. */
  readonly controlPlane: string;
  readonly readAtMs: number;
  readonly keepMs: number;
  readonly warnOnce: (text: string) => void;
  readonly ends: readonly CredentialEnd[];
}

/** A kubeconfig is kept for 4 to 8 hours, so that a fleet's reads spread. */
const KEEP_MS = 4 * 60 * 60_000;
/** Where a renewed one is to be expected, or reading costs nothing. */
const KEEP_BRIEFLY_MS = 5 * 60_000;
/** A store is read at most so often for a server that is not reached or refuses the credential: each time costs. */
const STORE_PAUSE_MS = 60_000;
const MOST_KNOWN = 10_000;

/**
 * The clusters of this process. A kubeconfig is kept for hours. It is read again, at most once a minute from a store,
 * within a pass whose credential was refused, which then continues with the new one; for the next pass after the server
 * was not reached; every five minutes while its credential is in the last third of its life; and before a pass frees
 * anything.
 */
export class ClusterConnections {
  readonly #options: ClusterConnectionsOptions;
  readonly #connections = new ApiServerConnections();
  readonly #inFlight = new BytesInFlight();
  readonly #known = new Map<string, KnownKubeconfig>();
  readonly #pacer: ReadPacer;

  constructor(options: ClusterConnectionsOptions) {
    this.#options = options;
    this.#pacer = new ReadPacer(options);
  }

  async connect(spec: ClusterSpec, { loop, signal, warn }: ConnectOptions): Promise<ClusterAccess> {
    const opening: Opening = { key: JSON.stringify([spec.name, spec.kubeconfig]), spec, signal, warn };
    const kept = this.#kept(opening);
    const opened = kept ?? (await this.#open(opening));
    const { access, ends, controlPlane: id } = opened;
    const used = new Set([id]);
    const userAgent = `kube-bootstrap-controller/${VERSION} (${loop})`;
    const transport = this.#renewing(opening, opened, kept !== undefined && this.#mayReadAgain(opening), used);
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
      kubernetes: clusterPort({ ...call, userAgent }),
      probe: httpsProber({ access, deadline: signal, userAgent }),
      controlPlane: { id, confirm: (maxAgeMs) => this.#confirm(opening, used, maxAgeMs) },
      credentialEndsSoon: ends.some((end) => endsSoon(end, this.#options.nowMs())),
    };
  }

  /** @param used the control planes that the pass has sent requests to */
  async #confirm(opening: Opening, used: ReadonlySet<string>, maxAgeMs: number): Promise<boolean> {
    const known = this.#known.get(opening.key);
    const isFresh = known !== undefined && Math.abs(this.#options.nowMs() - known.readAtMs) <= maxAgeMs;
    const { controlPlane } = isFresh ? known : await this.#open(opening);
    return used.size === 1 && used.has(controlPlane);
  }

  /** Ends every connection, once what is under way has ended. */
  async close(): Promise<void> {
    this.#known.clear();
    await this.#connections.close();
  }

  #kept({ key, spec }: Opening): KnownKubeconfig | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    const nowMs = this.#options.nowMs();
    const isBrief = 'file' in spec.kubeconfig || known.ends.some((end) => endsSoon(end, nowMs));
    return nowMs - known.readAtMs < (isBrief ? KEEP_BRIEFLY_MS : known.keepMs) ? known : undefined;
  }

  /** Only what was read is kept: the next pass begins a read that hangs or fails again. */
  async #open({ key, spec, signal, warn }: Opening): Promise<KnownKubeconfig> {
    const { nowMs, loadKubeconfig, random = Math.random } = this.#options;
    const access = await this.#pacer.paced(spec, signal, () => loadKubeconfig(spec, signal));
    const warning = this.#known.get(key)?.warnOnce ?? warnOnce(warn);
    const ends = await credentialEnds(access);
    const opened: KnownKubeconfig = {
      access,
      controlPlane: controlPlaneOf(access),
      readAtMs: nowMs(),
      keepMs: KEEP_MS * (1 + random()),
      warnOnce: warning,
      ends,
    };
    for (const end of ends) if (endsSoon(end, nowMs())) warning(endText(end));
    if (access.skipTlsVerify) opened.warnOnce('the kubeconfig says not to verify the certificate of the API server');
    this.#known.delete(key);
    this.#known.set(key, opened);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return opened;
  }

  /** `mayBeOld`: it was not read for this pass. */
  #renewing(opening: Opening, opened: KnownKubeconfig, mayBeOld: boolean, used: Set<string>): Transport {
    const first = this.#connections.transport(opened.access);
    let renewed: Promise<Transport> | undefined;
    return async (request, signal) => {
      try {
        const current = await (renewed ?? first);
        const reply = await current(request, signal);
        if (reply.status !== 401) return reply;
        // A credential that was read just now and is refused: what the next pass reads may be better.
        if (!mayBeOld || current !== first) {
          this.#forget(opening);
          return reply;
        }
        renewed ??= this.#open(opening).then(({ access, controlPlane }) => {
          used.add(controlPlane);
          return this.#connections.transport(access);
        }, refusedAndUnread);
        const next = await (await renewed)(request, signal);
        if (next.status === 401) this.#forget(opening);
        return next;
      } catch (error) {
        this.#forget(opening);
        throw error;
      }
    };
  }

  #mayReadAgain({ key, spec }: Opening): boolean {
    const ageMs = this.#options.nowMs() - (this.#known.get(key)?.readAtMs ?? Number.NEGATIVE_INFINITY);
    return 'file' in spec.kubeconfig || ageMs >= STORE_PAUSE_MS;
  }

  /** Its warnings are not repeated. */
  #forget(opening: Opening): void {
    const { key } = opening;
    const known = this.#known.get(key);
    if (known !== undefined && this.#mayReadAgain(opening))
      this.#known.set(key, { ...known, readAtMs: Number.NEGATIVE_INFINITY });
  }
}

/** Reads that may begin at once, as many as the clusters of a message. Beyond them they wait for one another. */
const READS_AT_ONCE = 16;
const READ_EVERY_MS = 50;
/** For so long after a store throttled a read, ten processes stay within the 40 reads a second of Parameter Store. */
const THROTTLED_MS = 60_000;
const THROTTLED_READ_EVERY_MS = 250;

/** Spreads the reads of kubeconfigs: after a deployment or an outage no process has any. */
class ReadPacer {
  readonly #nowMs: () => number;
  readonly #sleep: NonNullable<CallOptions['sleep']>;
  /** When the read after the last one may begin, were there no burst. */
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #throttledUntilMs = Number.NEGATIVE_INFINITY;

  constructor({ nowMs, sleep }: ClusterConnectionsOptions) {
    this.#nowMs = nowMs;
    this.#sleep = sleep ?? ((ms, signal) => timer(ms, undefined, { signal }));
  }

  async paced<Read>({ name, kubeconfig }: ClusterSpec, signal: AbortSignal, read: () => Promise<Read>): Promise<Read> {
    if ('file' in kubeconfig) return read();
    const waitMs = this.#turnInMs();
    if (waitMs > 0) {
      await this.#sleep(waitMs, signal).catch((cause: unknown) => {
        const message = `The kubeconfig of cluster ${name} was not read in time, because this process reads many. The next pass tries again.`;
        throw new ClusterError('Throttled', message, { cause });
      });
    }
    return read().catch((error: unknown) => {
      if (error instanceof ClusterError && error.code === 'Throttled') {
        this.#throttledUntilMs = this.#nowMs() + THROTTLED_MS;
      }
      throw error;
    });
  }

  #turnInMs(): number {
    const nowMs = this.#nowMs();
    const isThrottled = nowMs < this.#throttledUntilMs;
    const everyMs = isThrottled ? THROTTLED_READ_EVERY_MS : READ_EVERY_MS;
    const atOnce = isThrottled ? 0 : READS_AT_ONCE;
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - atOnce * everyMs) + everyMs;
    return this.#nextAtMs - nowMs;
  }
}

/** Without the credential: another one of the same API server reads the same Services. */
function controlPlaneOf({ server, basePath, tls }: ApiServerAccess): string {
  const { ca = '', servername = '' } = tls();
  return createHash('sha256')
    .update(JSON.stringify([server, basePath, servername, ca.toString()]))
    .digest('hex')
    .slice(0, 16);
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
  const message = `The API server refused the credential, and the kubeconfig cannot be read again: ${error.message}`;
  throw new ClusterError(error.code, message, { cause: error });
}

/** Logs each text once: made once per cluster for the life of a process. */
function warnOnce(warn: (text: string) => void): (text: string) => void {
  const warned = new Set<string>();
  return (text) => {
    if (!warned.has(text)) warn(text);
    warned.add(text);
  };
}
