import type { FindingType } from '../../lib/cluster/finding.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterErrorCode, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import type { LoopDefinition, PassContext, PassReport } from '../../lib/loops/pass.ts';
import { portsFor, writesOf } from '../../lib/loops/writes.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { RangeKey } from '../../lib/spec/spec-ranges.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { memoryTable } from '../support/memory-table.ts';
import { aPassContext } from '../support/pass-context.ts';
import { isSelected } from './services.ts';

const INTERVAL_MS = 180_000;

/** A cluster with its table and its Services for the two repair loops. Only the tests advance its clock. */
export class RepairCluster {
  services: readonly ServiceClaim[];
  nowMs = 1_000_000_000;
  rangesGeneration = 1;
  readonly spec: ClusterSpec;
  readonly wouldWrite: string[] = [];
  #passes = 0;
  #previous: PassContext['previous'] = { observed: false };
  readonly table = memoryTable({ nowMs: () => this.nowMs });

  constructor({ services = [], ...spec }: Partial<ClusterSpec> & Partial<Pick<RepairCluster, 'services'>> = {}) {
    this.services = services;
    this.spec = aClusterSpec({ name: 'test', allocator: 'table', maxEventsPerPass: 100, ...spec });
  }

  context(changed: Partial<PassContext> = {}): PassContext {
    const passId = `pass-${++this.#passes}`;
    const given = aPassContext({
      kubernetes: listing(() => this.services),
      spec: this.spec,
      rangesGeneration: this.rangesGeneration,
      table: this.table,
      passId,
      nowMs: () => this.nowMs,
      previous: this.#previous,
      ...changed,
    });
    const wouldWrite = (line: string) => void this.wouldWrite.push(line);
    const options = { nowMs: () => this.nowMs, wouldWrite, confirmWrites: async () => {} };
    return { ...given, ...portsFor(writesOf(this.spec.mode), given, this.spec.allocator, options) };
  }

  /** Runs a pass with the state of the one before, and advances the clock by an interval. */
  async pass(loop: LoopDefinition, changed: Partial<PassContext> = {}): Promise<PassReport> {
    const report = await loop.run(this.context(changed));
    this.#previous = { observed: false, ...(report.state !== undefined && { state: report.state }) };
    this.nowMs += INTERVAL_MS;
    return report;
  }

  async stored(key: RangeKey): Promise<StoredRange | undefined> {
    return (await readRange(this.table, this.spec.name, key))?.stored;
  }

  /** Writes a range to the table, and overwrites the stored range. */
  async store(key: RangeKey, stored: Partial<StoredRange> & Pick<StoredRange, 'range' | 'data'>): Promise<void> {
    const previous = await this.table.get(this.spec.name, key);
    await saveRange(this.table, this.spec.name, key, storedRange(stored), previous);
  }
}

export function countsByType({ findings }: PassReport): Partial<Record<FindingType, number>> {
  const counts: Partial<Record<FindingType, number>> = {};
  for (const { type } of findings) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

export function storedRange(fields: Partial<StoredRange> & Pick<StoredRange, 'range' | 'data'>): StoredRange {
  const none = new Uint8Array(0);
  const strikes = { once: none, twice: none };
  return { allocator: 'table', generation: 1, strikes, holds: [], unclaimed: [], ...fields };
}

/** Returns a list that fails when it is read. */
export function brokenList(code: ClusterErrorCode): AsyncIterable<never> {
  const next = () => Promise.reject(new ClusterError(code, `the list failed: ${code}`));
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

/** Returns a cluster that can only list Services and ServiceCIDRs. Calls `services` when a list starts. */
export function listing(
  services: () => Iterable<ServiceClaim> | AsyncIterable<ServiceClaim>,
  serviceCidrs: Readonly<Record<string, readonly string[]>> = {},
): ClusterPort {
  const cidrs = Object.entries(serviceCidrs).map(([name, cidrs]) => ({ metadata: { name }, spec: { cidrs } }));
  const port: Pick<ClusterPort, 'services' | 'ipAddresses' | 'list'> = {
    list: async () => cidrs as never,
    async *services(selection) {
      for await (const service of services()) if (isSelected(service, selection)) yield [service];
    },
    ipAddresses: () => brokenList('Rejected'),
  };
  return port as ClusterPort;
}
