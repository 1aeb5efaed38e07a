import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import type { Process } from './process.ts';
import { ADDRESSES, BALANCED, BALANCED_SERVICE, HOST, SECOND_ADDRESSES, SPARES } from './servers.ts';
import { INTERVAL_MS } from './settings.ts';
import type { TableWrite } from './stand-in-table.ts';
import { hasItem } from './stored-items.ts';
import type { World } from './world.ts';

export const CLUSTER = 'demo';
/** A cluster of the same stack whose passes end or block their process. */
export const ATTACKER = 'attacker';
export const STACK = 'prod';
export const OTHER_STACK = 'staging';

interface Pause {
  readonly fromMs: number;
  readonly untilMs: number;
}

const SKEW_MS = 2_500;
/** The longest time from the last read of the pauses in a pass to its first write. */
const CONFIRMED_MS = 15_000;

/** The registration of the cluster, as people changed it: the facts against which the right to write is checked. */
export class Cluster {
  readonly #world: World;
  readonly firstAddresses: readonly [string, ...string[]];
  /** The API servers that have an agent. */
  readonly agents: ReadonlySet<string>;
  readonly deadAgents = new Set<string>();
  readonly pauses = new Map<'all' | 'cluster', Pause>();
  spec: ClusterSpec;
  /** True while the registration is deleted. Changes of the spec wait until the cluster is registered again. */
  isLost = false;
  /** True during an incident that must not overlap with other incidents that change the table. */
  isAway = false;
  observedSinceMs = Number.POSITIVE_INFINITY;
  /** The last time at which the mode, the ranges or the allocator changed, or the table was restored. */
  disturbedAtMs = 0;
  /** The time since which the table has all its items and is the only allocator. */
  inChargeSinceMs: number | undefined;

  constructor(world: World) {
    this.#world = world;
    const [first, ...others] = ADDRESSES.slice(0, world.has('twoServers') ? 2 : 3);
    const second = world.has('secondFamily') ? SECOND_ADDRESSES : [];
    this.firstAddresses = [first ?? ADDRESSES[0], ...others, ...second];
    this.agents = new Set(world.has('agents') ? this.firstAddresses.slice(1) : []);
    this.spec = this.#firstSpec();
  }

  /** Begins an incident in which another allocator may be in charge. Returns false if another one runs. */
  leave(): boolean {
    if (this.isAway) return false;
    this.isAway = true;
    this.disturbedAtMs = this.#world.clock.nowMs;
    return true;
  }

  /** The factor by which requests are rarer while another allocator may be in charge, because less of their answers can be judged. */
  get slowness(): number {
    return this.isAway ? 6 : 1;
  }

  isInSpec(item: string): boolean {
    const { serviceClusterIPRanges: cidrs, serviceNodePortRange: ports } = this.spec;
    return [...cidrs, ports].some((range) => hasItem(range, item));
  }

  named(): string[] {
    return this.spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  }

  /** Returns the addresses in the spec, and those of the spec's host and load balancer. */
  expected(): string[] {
    const records = this.#world.has('dns') ? this.#world.servers.records : [];
    const balanced = this.#world.has('balancer') ? BALANCED.map(({ address }) => address) : [];
    return [...new Set([...this.named(), ...records, ...balanced])];
  }

  /** Returns whether this registration, or that of all clusters, is paused, whichever clock is used. */
  isPaused(key: string): boolean {
    return this.#isInForce(this.pauses.get(key === CLUSTER ? 'cluster' : 'all'), this.#world.clock.nowMs);
  }

  /**
   * Returns whether a write must not happen because passes are paused. Its invocation began after the pause, read the pause, or
   * had to read it again.
   */
  isPausedFor({ sawPause, begunAtMs, sentAtMs }: Pick<TableWrite, 'sawPause' | 'begunAtMs' | 'sentAtMs'>): boolean {
    if (this.pauses.size === 0) return false;
    const sinceMs = sawPause ? this.#world.clock.nowMs : Math.max(begunAtMs, sentAtMs - CONFIRMED_MS);
    return [...this.pauses.values()].some((pause) => this.#isInForce(pause, sinceMs));
  }

  /** Checks that no pass writes ranges, Endpoints or slices of an observed cluster, and that no other stack writes to it. */
  checkMayWrite(by: Process, begunAtMs: number, what: string): void {
    if (begunAtMs > this.observedSinceMs)
      this.#world.violate('observed', `${by.name} wrote ${what} of an observed cluster`);
    if (by.stack !== STACK) this.#world.violate('otherStack', `${by.name} wrote ${what} of another stack's cluster`);
  }

  #isInForce(pause: Pause | undefined, sinceMs: number): boolean {
    return pause !== undefined && pause.fromMs < sinceMs && this.#world.clock.nowMs < pause.untilMs - SKEW_MS;
  }

  #firstSpec(): ClusterSpec {
    const has = this.#world.has.bind(this.#world);
    const primary = has('tightRange') ? '10.0.0.0/28' : has('wideRange') ? '10.0.0.0/26' : '10.0.0.0/27';
    // A pass tries up to 16 other servers if the server of its kubeconfig does not answer.
    const spares = has('silentSpares') && !has('oneServerKubeconfig') ? SPARES : [];
    const kubeconfig = { ssm: 'demo' };
    const serviceRef = { ...BALANCED_SERVICE, kubeconfig };
    return aClusterSpec({
      name: CLUSTER,
      allocator: has('addresses') ? 'apiserver' : 'table',
      repair: { ipAddresses: has('addresses') && has('repairAddresses') },
      kubeconfig,
      apiServers: [
        ...[...spares, ...this.firstAddresses].map((address) => aServer(address)),
        ...(has('dns') ? [aHost(HOST)] : []),
        ...(has('balancer') ? [aHost('service tenants/prod', { serviceRef })] : []),
      ],
      serviceClusterIPRanges:
        has('dualStack') || has('secondFamily') || has('addresses') ? [primary, 'fd00::/122'] : [primary],
      ...(has('secondFamily') && { service: { ipFamilyPolicy: 'PreferDualStack' } }),
      endpoints: { prune: has('prune'), leaseSeconds: has('longLeases') ? 40 : 15 },
      serviceNodePortRange: has('tightRange') ? '30000-30003' : '30000-30031',
      intervalSeconds: {
        'cluster-ip-repair': INTERVAL_MS / 1000,
        'node-port-repair': INTERVAL_MS / 1000,
      },
    });
  }
}
