import { hash, randomUUID } from 'node:crypto';
import { ReadPacer } from '../aws/read-pacer.ts';
import type { LoadKubeconfig } from '../aws/stored-kubeconfig.ts';
import type { Sleep } from '../kubernetes/api-calls.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import type { Prober } from '../kubernetes/cluster-port.ts';
import { type CredentialEnd, credentialEnds, endsSoon } from '../kubernetes/credentials.ts';
import { dnsHostResolver, dnsLookup } from '../kubernetes/dns.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { BytesInFlight } from '../kubernetes/reply-bounds.ts';
import { ApiServerConnections, KeptConnections, type Transport } from '../kubernetes/transport.ts';
import { probeOutcome } from '../leases/probe-outcome.ts';
import type { ClusterSpec, Loop } from '../spec/cluster-spec.ts';
import { isoTime, setLatest } from '../util/values.ts';
import { CONCURRENT_PASSES, startDeadline } from './deadline.ts';
import type { ClusterAccess, ConnectOptions, Environment } from './environment.ts';
import {
  answeringServer,
  MAY_USE_ANOTHER,
  orOther,
  otherServers,
  type PassKubeconfig,
  renewingProber,
  renewingTransport,
} from './pass-transport.ts';
import { VERSION } from './version.ts';

export interface ClusterConnectionsOptions {
  readonly nowMs: () => number;
  readonly loadKubeconfig: LoadKubeconfig;
  /** Waits between attempts of a call, and before a read of a kubeconfig. Default: a timer. */
  readonly sleep?: Sleep | undefined;
}

interface KnownKubeconfig {
  readonly access: ApiServerAccess;
  readonly controlPlane: string;
  readAtMs: number;
  /** The time at which the last read began. Reads that failed count only if they followed a failed request. */
  askedAtMs: number;
  readonly keepMs: number;
  /** The warnings that passes have logged since the first read of this kubeconfig. */
  readonly warned: Set<string>;
  readonly ends: readonly CredentialEnd[];
  /** The probe URLs whose certificate did not verify although this kubeconfig had just been read. */
  readonly unverified: Set<string>;
}

/** A kubeconfig stays in memory for a random time, from this time to twice this time, so that not all are read at once. */
const KEEP_MS = 4 * 60 * 60_000;
/** A kubeconfig stays in memory for this time if its credential ends soon, or if reading it costs nothing. */
const KEEP_BRIEFLY_MS = 5 * 60_000;
/** The shortest time between two reads of a stored kubeconfig while requests with it fail. AWS charges for each read. */
const STORE_PAUSE_MS = 60_000;
const MOST_KNOWN = 10_000;

/**
 * The connections of this process. If a credential or certificate is refused, the same pass reads the kubeconfig again. If a
 * server is unreachable, the next pass reads the kubeconfig again.
 */
export class ClusterConnections {
  readonly #options: ClusterConnectionsOptions;
  readonly #connections = new ApiServerConnections();
  readonly #keptOfProbes: KeptConnections;
  readonly #inFlight = new BytesInFlight();
  readonly #known = new Map<string, KnownKubeconfig>();
  readonly #pacer: ReadPacer;

  constructor(options: ClusterConnectionsOptions) {
    this.#options = options;
    this.#keptOfProbes = new KeptConnections(options.nowMs);
    this.#pacer = new ReadPacer(options.nowMs, options.sleep);
  }

  async connect(spec: ClusterSpec, { loop, signal, warn }: ConnectOptions): Promise<ClusterAccess> {
    const opening: Opening = { key: JSON.stringify([spec.name, spec.kubeconfig]), spec, signal, warn };
    const kept = this.#kept(opening);
    const opened = kept ?? (await this.#open(opening));
    const userAgent = `kube-bootstrap-controller/${VERSION} (${loop})`;
    const kubeconfig = this.#ofPass(opening, opened, kept === undefined);
    const proberOf = (current: ApiServerAccess) =>
      httpsProber({ access: current, deadline: signal, userAgent, kept: this.#keptOfProbes });
    const answered = new Set<string>();
    const prober = renewingProber(kubeconfig, proberOf);
    return {
      kubernetes: clusterPort({
        transport: this.#transport(opening, opened, kubeconfig, loop, proberOf, answered),
        server: opened.access.server,
        deadline: signal,
        userAgent,
        inFlight: this.#inFlight,
        sleep: this.#options.sleep,
      }),
      probe: async (target, given) => {
        const reply = await prober(target, given);
        if (probeOutcome(reply).verdict === 'ready') answered.add(target.url);
        return reply;
      },
      controlPlane: { id: opened.controlPlane, confirm: kubeconfig.confirm },
      credentialEndsSoon: opened.ends.some((end) => endsSoon(end, this.#options.nowMs())),
    };
  }

  async close(): Promise<void> {
    this.#known.clear();
    this.#keptOfProbes.close();
    await this.#connections.close();
  }

  #kept({ key, spec }: Opening): KnownKubeconfig | undefined {
    const known = this.#known.get(key);
    if (known === undefined) return undefined;
    const nowMs = this.#options.nowMs();
    const isBrief = 'file' in spec.kubeconfig || known.ends.some((end) => endsSoon(end, nowMs));
    return nowMs - known.readAtMs < (isBrief ? KEEP_BRIEFLY_MS : known.keepMs) ? known : undefined;
  }

  /** Reads the kubeconfig of a cluster. After a read that hangs or fails, the next pass reads again. */
  async #open(opening: Opening): Promise<KnownKubeconfig> {
    const { key, spec, signal } = opening;
    const { nowMs, loadKubeconfig } = this.#options;
    const askedAtMs = nowMs();
    const access = await this.#pacer.paced(spec, signal, () => loadKubeconfig(spec, signal));
    const ends = await credentialEnds(access);
    const opened: KnownKubeconfig = {
      access,
      controlPlane: controlPlaneOf(access),
      readAtMs: nowMs(),
      askedAtMs,
      keepMs: KEEP_MS * (1 + Math.random()),
      // Another pass may have read the kubeconfig meanwhile.
      warned: this.#known.get(key)?.warned ?? new Set(),
      ends,
      unverified: new Set(),
    };
    for (const end of ends.filter((one) => endsSoon(one, nowMs()))) {
      const endsAt = `the ${end.what} of the kubeconfig ends at ${isoTime(end.endsMs)}`;
      warnOnce(opening, opened, `${endsAt}: renew it (docs/kubeconfig-secret.md)`);
    }
    if (!access.tls().rejectUnauthorized) {
      warnOnce(opening, opened, 'the kubeconfig disables verification of the API server certificate');
    }
    setLatest(this.#known, key, opened, MOST_KNOWN);
    return opened;
  }

  #transport(
    opening: Opening,
    opened: KnownKubeconfig,
    kubeconfig: PassKubeconfig,
    loop: Loop,
    proberOf: (access: ApiServerAccess) => Prober,
    answered: ReadonlySet<string>,
  ): Transport {
    const { spec, signal } = opening;
    const { access } = opened;
    const transportOf = (current: ApiServerAccess) => this.#connections.transport(current);
    const own = renewingTransport(kubeconfig, transportOf);
    if (!MAY_USE_ANOTHER.has(loop) || otherServers(spec, access, { has: () => true }).length === 0) return own;
    return orOther(own, signal, async () => {
      const current = kubeconfig.current();
      const other = await answeringServer(otherServers(spec, current, answered), current, proberOf(current));
      if (other === undefined) return undefined;
      const use = `passes use ${other.server}, another API server of the spec, until it does`;
      warnOnce(opening, opened, `${current.server} does not answer: ${use}`);
      return transportOf(other);
    });
  }

  #ofPass(opening: Opening, opened: KnownKubeconfig, isReadInPass: boolean): PassKubeconfig {
    let latest = opened;
    let renewal: Promise<KnownKubeconfig> | undefined;
    /** The control planes that the pass may have sent requests to. */
    const used = new Set([opened.controlPlane]);
    return {
      current: () => latest.access,
      newerThan: async (refused) => {
        if (renewal === undefined && (isReadInPass || !this.#mayReadAgain(opening))) return undefined;
        renewal ??= this.#readAgain(opening);
        latest = await renewal;
        used.add(latest.controlPlane);
        return latest.access === refused ? undefined : latest.access;
      },
      forget: () => this.#forget(opening),
      isProvenAgainst: (url) => {
        if (isReadInPass || latest !== opened) latest.unverified.add(url);
        return latest.unverified.has(url);
      },
      confirm: async (maxAgeMs) => {
        const known = this.#known.get(opening.key);
        const isFresh = known !== undefined && Math.abs(this.#options.nowMs() - known.readAtMs) <= maxAgeMs;
        const { controlPlane } = isFresh ? known : await this.#open(opening);
        return used.size === 1 && used.has(controlPlane);
      },
    };
  }

  #readAgain(opening: Opening): Promise<KnownKubeconfig> {
    const known = this.#known.get(opening.key);
    if (known !== undefined) known.askedAtMs = this.#options.nowMs();
    return this.#open(opening);
  }

  #mayReadAgain({ key, spec }: Opening): boolean {
    const { askedAtMs = Number.NEGATIVE_INFINITY } = this.#known.get(key) ?? {};
    return 'file' in spec.kubeconfig || this.#options.nowMs() - askedAtMs >= STORE_PAUSE_MS;
  }

  /** Makes the next pass read the kubeconfig again, unless it was just read. */
  #forget(opening: Opening): void {
    const known = this.#known.get(opening.key);
    if (known !== undefined && this.#mayReadAgain(opening)) known.readAtMs = Number.NEGATIVE_INFINITY;
  }
}

/** Returns a hash that identifies the control plane. Omits the credential, because the list of Services does not depend on it. */
function controlPlaneOf({ server, basePath, tls }: ApiServerAccess): string {
  const { ca = '', servername = '' } = tls();
  return hash('sha256', JSON.stringify([server, basePath, servername, ca.toString()])).slice(0, 16);
}

interface Opening extends Omit<ConnectOptions, 'loop'> {
  readonly key: string;
  readonly spec: ClusterSpec;
}

function warnOnce({ warn }: Opening, { warned }: KnownKubeconfig, text: string): void {
  if (!warned.has(text)) warn(text);
  warned.add(text);
}

/** The parts of an environment that differ between a deployed function, a local run and a command. */
type EnvironmentParts = Omit<Environment, 'newPassId' | 'connect' | 'resolveHost' | Defaulted> &
  Partial<Pick<Environment, Defaulted>> &
  Omit<ClusterConnectionsOptions, 'nowMs'>;
type Defaulted = 'nowMs' | 'startDeadline' | 'clustersPerTick';

/** Creates the environment of invocations. `close` ends every connection to API servers. */
export function createEnvironment({ loadKubeconfig, nowMs = Date.now, sleep, ...parts }: EnvironmentParts) {
  const connections = new ClusterConnections({ nowMs, loadKubeconfig, sleep });
  const environment: Environment = {
    startDeadline,
    clustersPerTick: CONCURRENT_PASSES,
    newPassId: randomUUID,
    ...parts,
    nowMs,
    connect: (spec, options) => connections.connect(spec, options),
    resolveHost: (signal) => dnsHostResolver(dnsLookup(signal)),
  };
  return { environment, close: () => connections.close() };
}
