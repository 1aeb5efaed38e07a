import { type HeartbeatRequest, heartbeat } from '../../cli/heartbeat/agent.ts';
import type { KubernetesObject, ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ProbeReply } from '../../lib/cluster/probe-reply.ts';
import {
  addressesIn,
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  SLICE_REF,
} from '../../lib/cluster/published-objects.ts';
import { type DeregisterRequest, deregister } from '../../lib/deregister/deregister.ts';
import type { ClusterPort, ObjectRef, ProbeTarget } from '../../lib/kubernetes/cluster-port.ts';
import type { Lease } from '../../lib/leases/lease.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import type { LoopDefinition, PassContext, PassReport } from '../../lib/loops/pass.ts';
import { portsFor, writesOf } from '../../lib/loops/writes.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { RangeKey } from '../../lib/spec/spec-ranges.ts';
import { leaseOf, readLeases } from '../../lib/table/leases.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { listing } from '../repair/services.ts';
import { aClusterSpec, type SpecFields, serversAt } from './a-cluster-spec.ts';
import { CONTROL_PLANE, type MemoryCluster, memoryCluster } from './memory-cluster.ts';
import { type MemoryTable, memoryStore, memoryTable } from './memory-table.ts';
import { type LeaseFields, putLease } from './put-lease.ts';
import { storedRange } from './ranges.ts';
import { tableThrough } from './table-through.ts';

export function aPassContext(
  given: { kubernetes: ClusterPort; spec?: Partial<ClusterSpec> } & Partial<Omit<PassContext, 'spec' | 'kubernetes'>>,
): PassContext {
  const { spec, ...rest } = given;
  const nowMs = rest.nowMs ?? (() => 0);
  return {
    spec: aClusterSpec(spec),
    rangesGeneration: 1,
    table: memoryTable({ nowMs }),
    probe: () => Promise.resolve({ kind: 'silence', message: 'nothing is probed' }),
    lookUp: () => Promise.resolve(undefined),
    controlPlane: CONTROL_PLANE,
    passId: 'pass',
    nowMs,
    triesEveryMs: 10_000,
    startDeadline: () => ({ signal: new AbortController().signal, cancel: () => {} }),
    pause: () => Promise.resolve(),
    previous: undefined,
    ...rest,
  };
}

export const READY: ProbeReply = { kind: 'status', status: 200, body: 'ok' };
export const SILENT: ProbeReply = { kind: 'silence', message: 'connect ECONNREFUSED' };
export const SHUTTING_DOWN: ProbeReply = {
  kind: 'status',
  status: 500,
  body: '[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed',
};

export const [A, B, C] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'] as const;
export const [V6, W6] = ['2001:db8::1', '2001:db8::2'] as const;

/** Returns a world with API servers at these addresses, which all answer probes. */
export function worldOf(...addresses: readonly string[]): PassWorld {
  return new PassWorld({ apiServers: serversAt(...addresses) }).answer(READY, ...addresses);
}

/** Returns a world of a dual-stack cluster, whose Service must have both families. */
export function dualWorldOf(...addresses: readonly string[]): PassWorld {
  const serviceClusterIPRanges = ['10.0.0.0/24', 'fd00::/108'] as const;
  return worldOf(...addresses).change({ serviceClusterIPRanges, service: { ipFamilyPolicy: 'PreferDualStack' } });
}

export async function settled(world = worldOf(A, B, C)): Promise<PassWorld> {
  await world.tick();
  return world;
}

const INTERVAL_MS = 180_000;

/**
 * One cluster with its table, the answers of its API servers and a clock. Tests run the passes one by one: `tick` a pass of
 * kubernetes-service, `pass` a pass of any loop.
 */
export class PassWorld {
  spec: ClusterSpec;
  nowMs = 1_000_000_000;
  rangesGeneration = 1;
  readonly cluster: MemoryCluster;
  /** The Services that passes list instead of those of the cluster. */
  services: readonly ServiceClaim[] | undefined;
  /** The answers to probes, by address. Other addresses are silent. */
  readonly answers = new Map<string, ProbeReply>();
  /** The DNS records, by host name. A lookup without a record fails. */
  readonly records = new Map<string, readonly string[]>();
  readonly probed: ProbeTarget[] = [];
  readonly tableCalls: string[] = [];
  readonly wouldWrite: string[] = [];
  /** The content of the table. */
  readonly content = memoryStore();
  readonly table: MemoryTable;
  /** A function that runs once, while a pass probes. */
  whileProbing: (() => Promise<unknown>) | undefined;
  #passes = 0;
  #previous: PassContext['previous'] = { observed: false };

  constructor(spec: SpecFields = {}, objects: readonly KubernetesObject[] = []) {
    const nowMs = () => this.nowMs;
    this.spec = aClusterSpec(spec);
    this.cluster = memoryCluster(objects, nowMs);
    const table = memoryTable({ nowMs, store: this.content });
    const recorded = tableThrough(table, (step, name) => {
      this.tableCalls.push(name);
      return step();
    });
    this.table = { ...recorded, remove: table.remove };
  }

  change({ endpoints, service, ...fields }: SpecFields): this {
    this.spec = aClusterSpec({
      ...this.spec,
      ...fields,
      endpoints: { ...this.spec.endpoints, ...endpoints },
      service: { ...this.spec.service, ...service },
    });
    return this;
  }

  answer(reply: ProbeReply, ...addresses: readonly string[]): this {
    for (const address of addresses) this.answers.set(address, reply);
    return this;
  }

  /** Runs `action` once, before the next write of this verb and kind. */
  beforeNext(write: `${'create' | 'update'} ${'Endpoints' | 'EndpointSlice'}`, action: () => unknown): void {
    this.cluster.beforeWrite = async (verb, { kind }) => {
      if (`${verb} ${kind}` !== write) return undefined;
      this.cluster.beforeWrite = undefined;
      await action();
      return undefined;
    };
  }

  async tick(afterMs = 10_000, changed: Partial<PassContext> = {}): Promise<PassReport> {
    this.nowMs += afterMs;
    for (const list of [this.cluster.writes, this.cluster.reads, this.tableCalls, this.probed]) list.length = 0;
    return this.#run(kubernetesService, changed);
  }

  /** Runs this number of ticks, and returns their reports. */
  async ticks(count: number, changed: Partial<PassContext> = {}): Promise<readonly PassReport[]> {
    const reports: PassReport[] = [];
    for (let tick = 0; tick < count; tick++) reports.push(await this.tick(10_000, changed));
    return reports;
  }

  /** Runs a pass with the state of the one before, and advances the clock by an interval of the repair loops. */
  async pass(loop: LoopDefinition, changed: Partial<PassContext> = {}): Promise<PassReport> {
    const report = await this.#run(loop, changed);
    this.nowMs += INTERVAL_MS;
    return report;
  }

  async #run(loop: LoopDefinition, changed: Partial<PassContext>): Promise<PassReport> {
    const report = await loop.run(this.context(changed));
    this.#previous = { observed: false, ...(report.state !== undefined && { state: report.state }) };
    return report;
  }

  /** Makes passes list these Services instead of those of the cluster. */
  list(...services: readonly ServiceClaim[]): this {
    this.services = services;
    return this;
  }

  /** Returns the addresses in the Endpoints. */
  published(): string[] {
    return addressesIn(this.cluster.find<EndpointsObject>(ENDPOINTS_REF));
  }

  /** Returns the addresses in a slice, also those that are not ready. Default: the slice that mirrors the Endpoints. */
  inSlice(ref: ObjectRef = SLICE_REF): string[] {
    return (this.cluster.find<EndpointSliceObject>(ref)?.endpoints ?? []).flatMap(({ addresses }) => addresses);
  }

  async lease(address: string): Promise<Lease | undefined> {
    return leaseOf(await readLeases(this.table, this.spec.name), address);
  }

  async setLease(fields: LeaseFields): Promise<void> {
    const before = { expiresAtMs: this.nowMs + 15_000, ...(await this.lease(fields.address)) };
    await putLease(this.table, this.spec.name, { ...before, ...fields });
  }

  deregister({
    kubernetes = this.cluster.port,
    ...request
  }: Pick<DeregisterRequest, 'address'> & Partial<DeregisterRequest> & { readonly kubernetes?: ClusterPort }) {
    const { spec, table } = this;
    return deregister({ spec, table, connect: async () => kubernetes, nowMs: () => this.nowMs, ...request });
  }

  /** Refreshes the lease of the API server at the address, as its agent does. */
  heartbeat(address: string, request: Partial<HeartbeatRequest> = {}) {
    const { table, spec } = this;
    const fixed = { table, cluster: spec.name, address, leaseMs: 15_000, nowMs: () => this.nowMs };
    return heartbeat({ ...fixed, probe: async () => READY, ...request });
  }

  async stored(key: RangeKey): Promise<StoredRange | undefined> {
    return (await readRange(this.table, this.spec.name, key))?.stored;
  }

  /** Writes a range to the table, and overwrites the stored range. */
  async store(key: RangeKey, stored: Partial<StoredRange> & Pick<StoredRange, 'range' | 'data'>): Promise<void> {
    const previous = await this.table.get(this.spec.name, key);
    await saveRange(this.table, this.spec.name, key, storedRange(stored), previous);
  }

  context(changed: Partial<PassContext> = {}): PassContext {
    const nowMs = () => this.nowMs;
    const { spec, services } = this;
    const given = aPassContext({
      kubernetes: services === undefined ? this.cluster.port : listing(() => services),
      spec,
      rangesGeneration: this.rangesGeneration,
      table: this.table,
      passId: `pass-${++this.#passes}`,
      nowMs,
      previous: this.#previous,
      lookUp: async ({ host }) => {
        const addresses = this.records.get(host);
        return addresses && { addresses };
      },
      probe: async (target) => {
        this.probed.push(target);
        const { whileProbing } = this;
        this.whileProbing = undefined;
        await whileProbing?.();
        return this.answers.get(new URL(target.url).hostname.replace(/^\[|\]$/g, '')) ?? SILENT;
      },
      ...changed,
    });
    const wouldWrite = (line: string) => void this.wouldWrite.push(line);
    const options = { nowMs, wouldWrite, confirmWrites: async () => {} };
    return { ...given, ...portsFor(writesOf(spec.mode), given, spec.allocator, options) };
  }
}
