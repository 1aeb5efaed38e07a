import { admission } from '../../lib/admission/admission.ts';
import { allocation } from '../../lib/allocate/allocation.ts';
import type { OutgoingMessage } from '../../lib/aws/send-batches.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import { CONCURRENT_PASSES } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Handler } from '../../lib/runtime/invocation.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { CLUSTERS, readPauseOfAll } from '../../lib/table/clusters.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { serverClock } from '../../lib/table/dynamodb/server-clock.ts';
import { logOnly } from '../../lib/telemetry/telemetry.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';
import { anAccess } from '../support/an-access.ts';
import { Chance, Clock } from './clock.ts';
import { EndpointTruth } from './endpoint-truth.ts';
import { networkOf } from './network.ts';
import { People } from './people.ts';
import { Process, type ProcessKind } from './process.ts';
import { RangeTruth } from './range-truth.ts';
import {
  ADDRESSES,
  ApiServers,
  BALANCED,
  BALANCED_SERVICE,
  BALANCER,
  HOST,
  SECOND_ADDRESSES,
  SPARES,
} from './servers.ts';
import { type Feature, INTERVAL_MS, type Settings } from './settings.ts';
import { connectNetwork } from './stand-in-http-client.ts';
import { StandInTable, type Store, type TableWrite } from './stand-in-table.ts';
import { StockCluster } from './stock-cluster.ts';
import { hasItem, leaseFieldIn, type StoredRangeItem, storedRangeIn } from './stored-items.ts';
import { useTime } from './virtual-time.ts';

export const CLUSTER = 'demo';
export const STACK = 'prod';
export const OTHER_STACK = 'staging';
/** A namespace whose quota refuses its Services. */
export const GREEDY = 'greedy';
export const TOKEN = 'the-token-of-demo-that-nobody-guesses';

export interface Pause {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Violation {
  readonly kind: string;
  readonly message: string;
}

const SKEW_MS = 2_500;
/** The longest time from the last read of the pauses in a pass to its first write. */
const CONFIRMED_MS = 15_000;
/** The error of the clock of a function's host if it is far off. */
const FAR_SKEW_MS = 16 * 60_000;
const HOUR_MS = 3_600_000;
/**
 * The time for which the store of kubeconfigs fails. It is longer than other faults, and short enough that a leak still gets
 * three strikes.
 */
export const STORE_FAILS_MS = 90_000;
/** An invocation that takes longer may lack the time to release surplus items. */
const CALLS_END_MS = 20_000;
const NO_TELEMETRY = logOnly(() => {});

/** One cluster with its API servers, one table, and all processes that use them, on one clock. */
export class World {
  readonly settings: Settings;
  readonly chance: Chance;
  readonly clock = new Clock();
  readonly table: StandInTable;
  readonly servers: ApiServers;
  readonly endpoints: EndpointTruth;
  readonly ranges: RangeTruth;
  readonly violations: Violation[] = [];
  readonly history: string[] = [];
  readonly firstAddresses: readonly [string, ...string[]];
  readonly agents: ReadonlySet<string>;
  spec: ClusterSpec;
  /** True while calls can fail and incidents happen. */
  isFaulty = true;
  calmSinceMs = Number.POSITIVE_INFINITY;
  /** The time until which a third of all calls or of their replies is lost. */
  lossyUntilMs = 0;
  /** Writes of this item by processes of this kind are lost until this time. */
  lostWrites: { readonly of: ProcessKind; readonly key: string; readonly untilMs: number } | undefined;
  /** The time for which a deregistration stands still after each read of the leases. */
  haltOfDrainsMs = 0;
  onLeases: (() => void) | undefined;
  onRegistrationRead: ((by: Process) => void) | undefined;
  /** Called for each write of Endpoints and slices. Returns the delay of the write, whose sender then gives up. */
  delayOfWrite: ((kind: string, body: string) => number | undefined) | undefined;
  /** The number of incidents that currently prevent the functions from running. */
  stops = 0;
  /** True while the registration is deleted. Changes of the spec wait until the cluster is registered again. */
  isRegistrationLost = false;
  areRepairsStopped = false;
  hasEnded = false;
  observedSinceMs = Number.POSITIVE_INFINITY;
  /** The last time at which the mode, the ranges or the allocator changed, or the table was restored. */
  disturbedAtMs = 0;
  /** The time since which the table has all its items and is the only allocator. */
  inChargeSinceMs: number | undefined;
  readonly deadAgents = new Set<string>();
  /** The requests of which an invocation ended without an answer or logged errors. */
  readonly cutOff = new Set<string | undefined>();
  /** The events of requests that were sent twice. */
  readonly repeated = new WeakSet<object>();
  /** The last time at which a review could not release what it had allocated, or got no answer to a write. */
  mayLeakAtMs = Number.NEGATIVE_INFINITY;
  readonly people: People;
  /** The users of a cluster whose API servers allocate. */
  readonly stock: StockCluster | undefined;
  /** True during an incident that must not overlap with other incidents that change the table. */
  isAway = false;
  /** Copies of the table from times at which it had every owner. */
  readonly copies: { readonly atMs: number; readonly store: Store }[] = [];
  readonly pauses = new Map<'all' | 'cluster', Pause>();
  onMessage: (body: string) => void = () => {};
  readonly #isRecorded: boolean;
  readonly #idle = new Map<string, Process[]>();
  readonly #begunAtMs = new Map<string, number>();
  readonly #onBegun = new Map<string, () => void>();
  #processes = 0;

  constructor(settings: Settings, isRecorded = false) {
    this.settings = settings;
    this.#isRecorded = isRecorded;
    this.chance = new Chance(settings.seed);
    useTime(this.clock, this.chance.of('library'));
    const second = this.has('secondFamily') ? SECOND_ADDRESSES : [];
    this.servers = new ApiServers(this.clock, this.has('oneServerKubeconfig') ? ADDRESSES[0] : BALANCER, second);
    const [first, ...others] = ADDRESSES.slice(0, this.has('twoServers') ? 2 : 3);
    this.firstAddresses = [first ?? ADDRESSES[0], ...others, ...second];
    this.agents = new Set(this.has('agents') ? this.firstAddresses.slice(1) : []);
    this.endpoints = new EndpointTruth(this);
    this.ranges = new RangeTruth(this);
    this.table = new StandInTable({
      nowMs: () => this.clock.nowMs,
      onWrite: (write) => this.#written(write),
      onRead: (cluster, key, by) => {
        if (cluster === CLUSTERS && this.#isPaused(key)) by.sawPauseIn = by.invocation;
        if (cluster === CLUSTERS && key === CLUSTER) this.onRegistrationRead?.(by);
        if (key === 'masterleases' && by.kind === 'deregister' && this.haltOfDrainsMs > 0)
          by.freeze(this.haltOfDrainsMs);
      },
    });
    this.spec = this.#firstSpec();
    this.people = new People(this);
    this.stock = this.has('addresses') ? new StockCluster(this) : undefined;
    this.servers.plane.onWrite = (write) => {
      if (write.kind === 'endpoints' || write.kind === 'endpointslices') this.endpoints.check(write);
      else this.stock?.check(write, this.endpoints.call);
    };
  }

  get isStopped(): boolean {
    return this.stops > 0;
  }

  has(feature: Feature): boolean {
    return this.settings.features.has(feature);
  }

  note(line: string): void {
    if (this.#isRecorded) this.history.push(`${this.timeOf(this.clock.nowMs)} ${line}`);
  }

  timeOf(ms: number): string {
    return new Date(ms).toISOString().slice(11, 23);
  }

  violate(kind: string, message: string): void {
    this.note(`WRONG: ${message}`);
    this.violations.push({ kind, message });
  }

  stored(key: string): StoredRangeItem {
    return storedRangeIn(this.table.find(CLUSTER, key));
  }

  /** Returns whether the table has a withdrawal of the address that ends after `sinceMs`. */
  isMarked(address: string, sinceMs = this.clock.nowMs): boolean {
    return this.leaseField(address, 'withdrawnUntilMs') > sinceMs;
  }

  /** Returns a time of the lease of an address in the table, or its count of misses; 0 without one. */
  leaseField(address: string, field: string): number {
    return leaseFieldIn(this.table.find(CLUSTER, 'masterleases'), address, field);
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
    const records = this.has('dns') ? this.servers.records : [];
    const balanced = this.has('balancer') ? BALANCED.map(({ address }) => address) : [];
    return [...new Set([...this.named(), ...records, ...balanced])];
  }

  /** Sets the addresses that must be published from now on: those of the spec and of its DNS records. */
  expectAddresses(): void {
    this.endpoints.expect(this.expected());
  }

  /** Returns the table and the clock of a kbctl command. By default it runs on a person's machine, without faults. */
  async kbctl(
    process = new Process(this, `desk-${++this.#processes}`, 'desk', this.skewOf(`person at ${this.clock.nowMs}`)),
    deadline = new AbortController().signal,
  ): Promise<{ readonly table: ReturnType<Environment['table']>; readonly nowMs: () => number }> {
    const client = this.table.client(process);
    // The real kbctl writes nothing if the clock is more than 2 s off. Here it writes by the corrected clock.
    const { nowMs } = serverClock(client, process.nowMs);
    const table = dynamoDbTable({ client, tableName: 't', deadline, nowMs, newWriteId: process.newId });
    await readPauseOfAll(table);
    return { table, nowMs };
  }

  /** Returns the clock error of a machine that runs no function. */
  skewOf(name: string): number {
    return this.has('skewedMachines') ? this.chance.of(name).oneOf([-HOUR_MS, -2_000, 2_000, HOUR_MS]) : 0;
  }

  /**
   * Invokes a function, in a warm process if there is one. An error that the function throws is returned as its answer.
   * @returns `undefined` if no answer came because the process ended or its time was over
   */
  async invoke<Answer>(
    kind: ProcessKind,
    event: unknown,
    limitMs = 30_000,
    stack = STACK,
  ): Promise<Answer | Error | undefined> {
    const pool = `${stack} ${kind}`;
    const process = this.#idle.get(pool)?.pop() ?? this.#start(kind, stack);
    const { clock } = this;
    const endsAtMs = clock.nowMs + limitMs;
    process.invocation++;
    process.invokedAtMs = clock.nowMs;
    process.isReading = isReading(event as object);
    process.freeze(0);
    const end = clock.at(endsAtMs, () => process.end());
    const handler = process.handler as Handler<Answer>;
    const environment = process.environment as Environment;
    const work = handler(event, { environment, getRemainingTimeInMillis: () => endsAtMs - clock.nowMs });
    const answer = await Promise.race([work.catch((error: unknown) => asError(error)), process.died]);
    end.isCancelled = true;
    if (process.isDead) this.note(`${process.name} ended in the middle`);
    const isLate = clock.nowMs > process.invokedAtMs + CALLS_END_MS;
    if (process.isDead || isLate || answer instanceof Error)
      this.cutOff.add((event as { requestId?: string }).requestId);
    if (process.isDead || answer === 'died') return undefined;
    this.#idle.set(pool, [...(this.#idle.get(pool) ?? []), process]);
    return answer;
  }

  /** Invokes a function over a network that loses and repeats calls. Gives up after `patienceMs`, as a caller does. */
  async ask<Answer>(
    kind: ProcessKind,
    event: object,
    patienceMs: number,
    chance: Chance,
  ): Promise<Answer | Error | undefined> {
    const { clock, isFaulty, isStopped } = this;
    await clock.wait(chance.pick(50));
    const lost = isFaulty ? chance.pick(30) : 2;
    if (lost === 0 || isStopped) await clock.wait(patienceMs);
    if (lost === 0 || isStopped) return undefined;
    const answered = this.invoke<Answer>(kind, event);
    if (isFaulty && chance.once(10)) {
      this.repeated.add(event);
      clock.in(chance.pick(3_000), () => void this.invoke(kind, event));
    }
    const answer = await Promise.race([answered, clock.wait(patienceMs)]);
    if (lost === 1) await clock.wait(patienceMs);
    return lost === 1 ? undefined : (answer ?? undefined);
  }

  onceBegun(id: string): Promise<void> {
    return new Promise((resolve) => void this.#onBegun.set(id, resolve));
  }

  begunAtMs(id: string): number {
    return this.#begunAtMs.get(id) ?? 0;
  }

  endProcesses(): void {
    for (const processes of this.#idle.values()) for (const process of processes) process.end();
    this.#idle.clear();
  }

  #start(kind: ProcessKind, stack: string): Process {
    const name = `${kind}-${++this.#processes}`;
    const chance = this.chance.of(name);
    const skews = [chance.between(-2_000, 2_000), -FAR_SKEW_MS, FAR_SKEW_MS] as const;
    const process = new Process(this, name, kind, this.has('skewedFunctions') ? chance.oneOf(skews) : 0);
    process.stack = stack;
    process.handler = this.#handlerOf(process);
    process.environment = this.environmentOf(process);
    return process;
  }

  #handlerOf({ kind, pick }: Process): Handler<unknown> {
    switch (kind) {
      case 'endpoints':
        return loopHandler(kubernetesService);
      case 'repair':
        return loopHandler(clusterIpRepair);
      case 'portRepair':
        return loopHandler(nodePortRepair);
      case 'deregister':
        return deregistration();
      case 'admission': {
        const settings = { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'ssm', secretsPrefix: 'p/' } as const;
        return admission({ settings, readTokens: async () => ({ outcome: 'read', text: TOKEN }), pick });
      }
      case 'allocate':
        return allocation({ pick });
      case 'agent':
      case 'desk':
        throw new Error(`${kind} is no function`);
    }
  }

  /** Returns the environment of a function. Its parts are the real ones, except those that do I/O. */
  environmentOf(process: Process): Environment {
    const { newId, startDeadline } = process;
    const client = this.table.client(process);
    const clock = serverClock(client, process.nowMs);
    const { nowMs } = clock;
    const table = (deadline: AbortSignal) =>
      dynamoDbTable({ client, tableName: 't', deadline, nowMs, newWriteId: newId });
    const connections = new ClusterConnections({
      nowMs,
      loadKubeconfig: (_, signal) => this.#kubeconfig(process, signal),
    });
    return {
      nowMs,
      clock,
      newPassId: newId,
      startDeadline,
      telemetry: () => this.#telemetryOf(process),
      reportingInstance: 'simulation',
      clustersPerTick: CONCURRENT_PASSES,
      stack: process.stack,
      ...(process.kind === 'endpoints' && { tickQueue: { send: (messages) => this.#queue(process, messages) } }),
      table,
      connect: (spec, options) => connections.connect(spec, options),
      resolveHost: (signal) => async (name, given) => {
        const answer = await process
          .exchange(() => this.servers.recordsOf(name), { signal: given ?? signal })
          .catch(() => undefined);
        return answer?.outcome === 'reply' ? answer.reply : undefined;
      },
    };
  }

  #telemetryOf({ name }: Process): ReturnType<Environment['telemetry']> {
    const log = (
      level: string,
      text: string,
      fields: { readonly request?: string; readonly errors?: readonly string[] } = {},
    ) => {
      // The function could not release surplus items, which stay held until the end of their hold.
      if (fields.errors !== undefined) this.cutOff.add(fields.request);
      if (text === 'admission: not released') this.mayLeakAtMs = this.clock.nowMs;
      const broken = (fields.errors ?? []).find((error) => /^(Reference|Type|Range)Error/.test(error));
      if (broken !== undefined) this.violate('broken', `${name}: ${broken}`);
      if (this.#isRecorded && level !== 'info') this.note(`${name}: ${text} ${JSON.stringify(fields).slice(0, 400)}`);
    };
    return { ...NO_TELEMETRY, log };
  }

  async #kubeconfig(process: Process, signal: AbortSignal): Promise<ApiServerAccess> {
    const { nowMs } = this.clock;
    const isRepair = process.kind.endsWith('epair');
    const mayFail = isRepair && this.has('storeFails') && nowMs < this.calmSinceMs + STORE_FAILS_MS;
    if (mayFail && this.chance.of(`store at ${nowMs}`).once(2))
      throw new ClusterError('Unavailable', 'the store fails');
    const answer = await process.exchange(() => this.servers.kubeconfig, { signal });
    if (answer.outcome !== 'reply') throw new ClusterError('Unavailable', 'the store does not answer');
    const { server, ca, token } = answer.reply;
    const material = connectNetwork(ca, networkOf(this, process, ca));
    return anAccess({
      server,
      tls: () => ({ ca: material, rejectUnauthorized: true }),
      authHeaders: async () => ({ authorization: token }),
    });
  }

  async #queue(process: Process, messages: readonly OutgoingMessage[]): Promise<[]> {
    await process.exchange(() => {
      for (const { body, delaySeconds } of messages) {
        const send = () => this.clock.in(delaySeconds * 1000 + this.chance.pick(700), () => this.onMessage(body));
        send();
        // The queue delivers each message at least once.
        if (this.isFaulty && this.chance.once(this.has('busy') ? 1 : 4)) this.clock.in(this.chance.pick(3_000), send);
      }
    });
    return [];
  }

  /** Returns whether this registration, or that of all clusters, is paused, whichever clock is used. */
  #isPaused(key: string): boolean {
    return this.#isInForce(this.pauses.get(key === CLUSTER ? 'cluster' : 'all'), this.clock.nowMs);
  }

  /**
   * Returns whether a write must not happen because passes are paused. Its invocation began after the pause, read the pause, or
   * had to read it again.
   */
  isPausedFor({ sawPause, begunAtMs, sentAtMs }: Pick<TableWrite, 'sawPause' | 'begunAtMs' | 'sentAtMs'>): boolean {
    const sinceMs = sawPause ? this.clock.nowMs : Math.max(begunAtMs, sentAtMs - CONFIRMED_MS);
    return [...this.pauses.values()].some((pause) => this.#isInForce(pause, sinceMs));
  }

  /** Checks that no pass writes ranges, Endpoints or slices of an observed cluster, and that no other stack writes to it. */
  checkMayWrite(by: Process, begunAtMs: number, what: string): void {
    if (begunAtMs > this.observedSinceMs) this.violate('observed', `${by.name} wrote ${what} of an observed cluster`);
    if (by.stack !== STACK) this.violate('otherStack', `${by.name} wrote ${what} of another stack's cluster`);
  }

  #isInForce(pause: Pause | undefined, sinceMs: number): boolean {
    return pause !== undefined && pause.fromMs < sinceMs && this.clock.nowMs < pause.untilMs - SKEW_MS;
  }

  #written(write: TableWrite): void {
    const { cluster, key, after, by } = write;
    if (cluster !== CLUSTER) return;
    const isRange = key.startsWith('ranges/');
    this.#checkAllowed(write, isRange);
    if (isRange) this.ranges.check(write);
    if (key === 'masterleases') this.#leasesWritten(write);
    if (key.startsWith('requests/') && write.before === undefined) {
      const id = key.slice('requests/'.length);
      this.#begunAtMs.set(id, this.clock.nowMs);
      this.#onBegun.get(id)?.();
    }
    const isObserved = after?.['value']?.M?.['mode']?.S === 'observe';
    if (key === 'runs/cluster-ip-repair' && isObserved) {
      this.ranges.observed('ranges/serviceips');
      this.ranges.observed('ranges/secondaryserviceips');
    }
    if (key === 'runs/node-port-repair' && isObserved) this.ranges.observed('ranges/servicenodeports');
    if (this.#isRecorded && !key.startsWith('runs/')) this.note(`${by.name} wrote ${key}`);
  }

  #checkAllowed(write: TableWrite, isRange: boolean): void {
    const { key, by } = write;
    if (write.isReading) this.violate('dryRun', `${by.name} wrote ${key} in a dry run or a look-up`);
    // The range of a cluster whose API servers allocate only informs users.
    if (isRange && this.stock !== undefined) return;
    this.checkMayWrite(by, isRange ? write.begunAtMs : 0, key);
    if (isRange && this.isPausedFor(write) && by.kind.endsWith('epair')) {
      this.violate('paused', `${by.name} wrote ${key} although passes are paused`);
    }
  }

  #leasesWritten(write: TableWrite): void {
    this.onLeases?.();
    if (write.by.kind === 'deregister') this.endpoints.checkMarked(write);
  }

  #firstSpec(): ClusterSpec {
    const isTight = this.has('tightRange');
    const primary = isTight ? '10.0.0.0/28' : this.has('wideRange') ? '10.0.0.0/26' : '10.0.0.0/27';
    // A pass tries up to 16 other servers if the server of its kubeconfig does not answer.
    const spares = this.has('silentSpares') && !this.has('oneServerKubeconfig') ? SPARES : [];
    const servers = [...spares, ...this.firstAddresses].map((address) => aServer(address));
    const kubeconfig = { ssm: 'demo' };
    const serviceRef = { ...BALANCED_SERVICE, kubeconfig };
    return aClusterSpec({
      name: CLUSTER,
      allocator: this.has('addresses') ? 'apiserver' : 'table',
      repair: { ipAddresses: this.has('repairAddresses') },
      kubeconfig,
      apiServers: [
        ...servers,
        ...(this.has('dns') ? [aHost(HOST)] : []),
        ...(this.has('balancer') ? [aHost('service tenants/prod', { serviceRef })] : []),
      ],
      serviceClusterIPRanges: ['dualStack', 'secondFamily', 'addresses'].some((each) => this.has(each as Feature))
        ? [primary, 'fd00::/122']
        : [primary],
      ...(this.has('secondFamily') && { service: { ipFamilyPolicy: 'PreferDualStack' } }),
      endpoints: { prune: this.has('prune'), leaseSeconds: this.has('longLeases') ? 40 : 15 },
      serviceNodePortRange: isTight ? '30000-30003' : '30000-30031',
      intervalSeconds: {
        'cluster-ip-repair': INTERVAL_MS / 1000,
        'node-port-repair': INTERVAL_MS / 1000,
      },
    });
  }
}

function isReading({ dryRun, operation, body = '' }: { dryRun?: true; operation?: string; body?: string }): boolean {
  return dryRun === true || operation === 'lookUp' || body.includes('"dryRun":true');
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
