import { type HeartbeatRequest, heartbeat } from '../../cli/heartbeat/heartbeat.ts';
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
import type { PassContext, PassReport } from '../../lib/loops/pass.ts';
import type { ApiServerSpec, ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { leaseOf, readLeases } from '../../lib/table/leases.ts';
import { aClusterSpec, aServer, type SpecFields } from './a-cluster-spec.ts';
import { type MemoryCluster, memoryCluster } from './memory-cluster.ts';
import { memoryTable } from './memory-table.ts';
import { aPassContext } from './pass-context.ts';
import { type LeaseFields, putLease } from './put-lease.ts';
import { tableThrough } from './table-through.ts';

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
export function worldOf(...addresses: readonly string[]): EndpointsWorld {
  return new EndpointsWorld(addresses.map((address) => aServer(address))).answer(READY, ...addresses);
}

/** Returns a world of a dual-stack cluster, whose Service must have both families. */
export function dualWorldOf(...addresses: readonly string[]): EndpointsWorld {
  const serviceClusterIPRanges = ['10.0.0.0/24', 'fd00::/108'] as const;
  return worldOf(...addresses).change({ serviceClusterIPRanges, service: { ipFamilyPolicy: 'PreferDualStack' } });
}

export async function settled(world = worldOf(A, B, C)): Promise<EndpointsWorld> {
  await world.tick();
  return world;
}

/** One cluster with its table, the answers of its API servers and a clock. Tests run the ticks one by one. */
export class EndpointsWorld {
  spec: ClusterSpec;
  nowMs = 1_000_000_000;
  readonly cluster: MemoryCluster = memoryCluster();
  /** The answers to probes, by address. Other addresses are silent. */
  readonly answers = new Map<string, ProbeReply>();
  /** The DNS records, by host name. A lookup without a record fails. */
  readonly records = new Map<string, readonly string[]>();
  readonly probed: ProbeTarget[] = [];
  readonly tableCalls: string[] = [];
  readonly table: KeyValueTable;
  /** A function that runs once, while a pass probes. */
  whileProbing: (() => Promise<unknown>) | undefined;
  #previous: PassContext['previous'];

  constructor(apiServers: readonly ApiServerSpec[], spec: Partial<ClusterSpec> = {}) {
    this.spec = aClusterSpec({ apiServers, ...spec });
    const table = memoryTable({ nowMs: () => this.nowMs });
    this.table = tableThrough(table, (step, name) => {
      this.tableCalls.push(name);
      return step();
    });
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

  async tick(afterMs = 10_000, context: Partial<PassContext> = {}): Promise<PassReport> {
    this.nowMs += afterMs;
    this.cluster.writes.length = 0;
    this.cluster.reads.length = 0;
    this.tableCalls.length = 0;
    this.probed.length = 0;
    const report = await kubernetesService.run({ ...this.#context(), ...context });
    this.#previous = { observed: false, ...(report.state !== undefined && { state: report.state }) };
    return report;
  }

  /** Runs this number of ticks, and returns their reports. */
  async ticks(count: number, context: Partial<PassContext> = {}): Promise<readonly PassReport[]> {
    const reports: PassReport[] = [];
    for (let tick = 0; tick < count; tick++) reports.push(await this.tick(10_000, context));
    return reports;
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

  #context(): PassContext {
    return aPassContext({
      kubernetes: this.cluster.port,
      spec: this.spec,
      table: this.table,
      nowMs: () => this.nowMs,
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
    });
  }
}
