import { bitsOf } from '../../lib/allocator/snapshot-bytes.ts';
import type { KubernetesObject, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { ENDPOINTS_REF, type EndpointsObject, readyAddresses } from '../../lib/endpoints/objects.ts';
import type { ProbeReply } from '../../lib/endpoints/probe-outcome.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Handler } from '../../lib/runtime/invocation.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable, WriteResult } from '../../lib/table/key-value-table.ts';
import { decodeRange } from '../../lib/table/ranges.ts';
import { withAddresses } from '../repair/services.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { type MemoryCluster, memoryCluster } from '../support/memory-cluster.ts';
import { countedWriteIds, type MemoryStore, memoryStore, memoryTable } from '../support/memory-table.ts';
import { CONTROL_PLANE } from '../support/pass-context.ts';
import { Driver } from './driver.ts';
import { Ledger } from './ledger.ts';

export const CLUSTER = 'demo';
export const SERVERS = ['192.0.2.1', '192.0.2.2', '192.0.2.3'] as const;
/** The servers whose hosts refresh their leases themselves. */
export const AGENTS = SERVERS.slice(1);
const CIDR = '10.0.0.0/27';
/** How long after a server was down it may be removed for it. */
const LATE_REMOVAL_MS = 45_000;

export const SPEC = aClusterSpec({
  name: CLUSTER,
  allocator: 'table',
  apiServers: SERVERS.map((address) => ({ address, kind: 'server', probe: { path: '/readyz', authenticate: false } })),
  serviceClusterIPRanges: [CIDR],
});

/** One table, one cluster with three API servers, and what goes wrong between them and the functions. */
export class World {
  readonly driver: Driver;
  readonly ledger: Ledger;
  readonly store: MemoryStore = memoryStore();
  readonly services = new Map<string, ServiceClaim>();
  readonly cluster: MemoryCluster = memoryCluster();
  /** The functions and their callers do not run. */
  stopped = false;
  /** Processes end in the middle, and replies are lost. */
  isFaulty = true;
  /** No more ticks. */
  hasEnded = false;
  /** What the functions do not reach. */
  readonly cutOff = new Set<string>();
  /** When each API server was down last; in the future while it is. */
  readonly downUntilMs = new Map<string, number>();
  /** Until when each address is withdrawn, from when its deregistration said that it is gone. */
  readonly withdrawnUntilMs = new Map<string, number>();
  /** A deregistration is under way. */
  readonly leaving = new Set<string>();
  /** The range in the table has to know every owner: not before a pass, and not while the table is not in charge. */
  isRecord = false;
  /** Since when the table has been in charge without another allocator, or with all its items. */
  inChargeSinceMs: number | undefined;
  agentIsDead = false;
  /** Of the table, from when it was the record of every owner. */
  readonly copies: { readonly atMs: number; readonly store: MemoryStore }[] = [];
  #published: readonly string[] = [];
  #lastRange: unknown;
  readonly #spoil: (table: KeyValueTable) => KeyValueTable;
  readonly #newWriteId = countedWriteIds();
  #passes = 0;

  /** @param spoil makes the table worse than it is. */
  constructor(seed: number, spoil: (table: KeyValueTable) => KeyValueTable = (table) => table) {
    this.driver = new Driver(seed);
    this.#spoil = spoil;
    this.ledger = new Ledger(this.nowMs);
  }

  readonly nowMs = (): number => this.driver.nowMs;

  /** The table as one process sees it, which ends at its deadline or, now and then, before. */
  table(deadline?: AbortSignal): KeyValueTable {
    const table = this.#spoil(this.quietTable());
    let dead = false;
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      await this.driver.hop(3_000);
      if (deadline?.aborted) throw new TableError('DeadlineExceeded', 'time is over');
      if (this.isFaulty && this.driver.once(400)) dead = true;
      if (dead) throw new TableError('Unavailable', 'the process ends here');
      return work();
    };
    const write = <T>(work: () => Promise<WriteResult<T>>) =>
      call(async (): Promise<WriteResult<T>> => {
        if (!this.isFaulty || !this.driver.once(80)) return work();
        if (this.driver.once(2)) await work();
        return { outcome: 'unclear' };
      });
    return {
      get: (cluster, key) => call(() => table.get(cluster, key)),
      list: (cluster, prefix) => call(() => table.list(cluster, prefix)),
      put: (content, previous) => write(() => table.put(content, previous)),
      delete: (previous) => write(() => table.delete(previous)),
    };
  }

  readonly environment: Environment = {
    nowMs: this.nowMs,
    newPassId: () => `pass-${++this.#passes}`,
    startDeadline: (ms) => {
      const controller = new AbortController();
      let cancelled = false;
      void this.driver.wait(ms).then(() => {
        if (!cancelled) controller.abort(new Error('time is over'));
      });
      return {
        signal: controller.signal,
        cancel: () => {
          cancelled = true;
        },
      };
    },
    telemetry: () => ({ log: () => {}, count: () => {}, sample: () => {}, flush: () => {} }),
    reportingInstance: 'simulation',
    table: (signal) => this.table(signal),
    connect: () =>
      Promise.resolve({
        kubernetes: this.#kubernetes(),
        probe: ({ url }) => this.#probe(url),
        controlPlane: CONTROL_PLANE,
      }),
    resolveHost: () => () => Promise.resolve(undefined),
  };

  /** One invocation of a function, or of what it does elsewhere. */
  invoke<Answer>(handler: Handler<Answer>, event: unknown, environment = this.environment): Promise<Answer> {
    const endMs = this.nowMs() + 30_000;
    return handler(event, { environment, getRemainingTimeInMillis: () => endMs - this.nowMs() });
  }

  answer(address: string): ProbeReply {
    const isUp = (this.downUntilMs.get(address) ?? 0) <= this.nowMs();
    if (isUp) return { kind: 'status', status: 200, body: 'ok' };
    return { kind: 'silence', message: 'connect ECONNREFUSED' };
  }

  /** These endpoints are there already. */
  adopt(endpoints: EndpointsObject): void {
    this.cluster.place(endpoints);
    this.#published = this.published();
  }

  /** The table for what does not count as a step. */
  quietTable(): KeyValueTable {
    return memoryTable({ nowMs: this.nowMs, newWriteId: this.#newWriteId, store: this.store });
  }

  /** So lately that it may be removed for it. */
  wasDown(address: string): boolean {
    return (this.downUntilMs.get(address) ?? 0) + LATE_REMOVAL_MS > this.nowMs();
  }

  published(): readonly string[] {
    return readyAddresses(this.cluster.find<EndpointsObject>(ENDPOINTS_REF));
  }

  /** Every address that is taken in the table. */
  taken(): Set<string> {
    const item = this.store.get(CLUSTER)?.get(RANGE_KEYS.primary);
    return new Set(item === undefined ? [] : [...bitsOf(decodeRange(item).data)].map((bit) => `10.0.0.${bit + 1}`));
  }

  /** After each step: whether anything has been wrong. */
  readonly isWrong = (): boolean => {
    const item = this.store.get(CLUSTER)?.get(RANGE_KEYS.primary);
    if (this.isRecord && item !== this.#lastRange) {
      this.#lastRange = item;
      const taken = this.taken();
      for (const address of this.ledger.owned()) {
        if (taken.has(address)) continue;
        this.ledger.violate(`${address} of ${this.ledger.ownersOf(address).join(', ')} was freed`);
      }
    }
    return this.ledger.violations.length > 0;
  };

  /** Behind the address of the kubeconfig is any API server that is reached. */
  #isCutOff(): boolean {
    return SERVERS.every((address) => this.cutOff.has(address));
  }

  async #probe(url: string): Promise<ProbeReply> {
    await this.driver.hop(300);
    const { hostname } = new URL(url);
    if (this.cutOff.has(hostname)) return { kind: 'silence', message: 'no route' };
    return this.answer(hostname);
  }

  #kubernetes(): ClusterPort {
    const { port } = this.cluster;
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      await this.driver.hop(1_000);
      if (this.#isCutOff()) throw new ClusterError('Unavailable', 'no route');
      const result = await work();
      this.#checkPublished();
      return result;
    };
    const listed = () => this.#listed();
    return {
      get: (ref) => call(() => port.get(ref)),
      list: (kind, namespace, selector) => call(() => port.list(kind, namespace, selector)),
      create: <T extends KubernetesObject>(object: T) =>
        call(async () => (object.kind === 'Event' ? { outcome: 'created', object } : port.create(object))),
      update: (object) => call(() => port.update(object)),
      mergePatch: () => call(async () => ({ outcome: 'notFound' })),
      delete: (object) => call(() => port.delete(object)),
      async *services() {
        yield* await call(async () => listed());
      },
      async *ipAddresses() {},
    };
  }

  #listed(): ServiceClaim[] {
    const own = this.cluster.find({ kind: 'Service', namespace: 'default', name: 'kubernetes' });
    const kubernetes = own === undefined ? [] : [{ ...withAddresses('kubernetes', '10.0.0.1'), namespace: 'default' }];
    return [...kubernetes, ...this.services.values()];
  }

  #checkPublished(): void {
    const now = this.published();
    const before = this.#published;
    this.#published = now;
    if (now.join() === before.join()) return;
    this.ledger.note(`published: ${now.join(' ')}`);
    const nowMs = this.nowMs();
    for (const address of before.filter((each) => !now.includes(each))) {
      if (!this.wasDown(address) && !this.leaving.has(address))
        this.ledger.violate(`${address} is healthy and was removed`);
    }
    for (const address of now.filter((each) => !before.includes(each))) {
      if ((this.withdrawnUntilMs.get(address) ?? 0) <= nowMs) continue;
      this.ledger.violate(`${address} is withdrawn and was published`);
    }
    if (now.length === 0 && before.length > 0) this.ledger.violate('no address is published');
  }
}
