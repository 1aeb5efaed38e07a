import { describe, expect } from '@jest/globals';
import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { bitsOf, fromBits, type RangeSnapshot } from '../../lib/allocator/snapshot-bytes.ts';
import type { FindingType } from '../../lib/cluster/finding.ts';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { SERVICE_READER } from '../../lib/kubernetes/item-reader.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition, PassReport } from '../../lib/loops/pass.ts';
import { emptyRange, type StoredRange } from '../../lib/range/stored-range.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import { countsByType } from '../repair/services.ts';
import { PassWorld } from '../support/pass-world.ts';
import { ipRange, portRange } from '../support/ranges.ts';
import { goldenTests } from './golden.ts';

interface GoldenRun {
  readonly services?: readonly KubernetesObject[] | null;
}

/** The snapshot of a scenario: either the allocated items, or the range and its data. */
interface GoldenSnapshot {
  readonly allocated?: readonly string[];
  readonly range?: string;
  readonly data?: string;
}

interface ExpectedSnapshot {
  readonly range: string;
  readonly data?: string;
  readonly allocated?: readonly string[] | null;
}

interface ExpectedRun {
  readonly error?: string;
  readonly events?: readonly object[] | null;
  readonly counts?: Readonly<Record<string, number>> | null;
  readonly snapshots: Readonly<Record<string, ExpectedSnapshot>>;
}

/** What differs between the two kinds of repair. */
interface GoldenRepair {
  readonly loop: LoopDefinition;
  readonly cluster: PassWorld;
  /** The keys of the ranges. Each is listed under the name that the range's snapshot has in the expected results. */
  readonly keys: Readonly<Record<string, RangeKey>>;
}

/** The types of findings that upstream counts in its metrics. Only this project has other findings. */
const COUNTED: readonly FindingType[] = ['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown', 'invalid'];

function snapshotOf(snapshot: GoldenSnapshot, range: RangeAllocator): RangeSnapshot {
  if (snapshot.data !== undefined || snapshot.range !== undefined) {
    return { range: snapshot.range ?? range.spec, data: Buffer.from(snapshot.data ?? '', 'base64') };
  }
  const bits = (snapshot.allocated ?? []).map((item) => {
    const bit = range.indexOf(item);
    if (bit === undefined) throw new Error(`${item} of the scenario's snapshot is not in ${range.spec}`);
    return bit;
  });
  return { range: range.spec, data: fromBits(bits) };
}

/** Runs one pass after the other, an interval apart. @returns the report and the stored ranges of each */
async function answersTo(repair: GoldenRepair, runs: readonly GoldenRun[]): Promise<object[]> {
  const answers: object[] = [];
  for (const { services } of runs) {
    repair.cluster.services = (services ?? []).map(SERVICE_READER.fromJson);
    const report = await repair.cluster.pass(repair.loop);
    answers.push({ ...reportOf(report), snapshots: await snapshotsOf(repair) });
  }
  return answers;
}

/** Returns the expected results in the format of {@link answersTo}. Absent lists become empty lists. */
function expectedAnswers(runs: readonly ExpectedRun[]): object[] {
  return runs.map(({ error, events, counts, snapshots }) => ({
    // All errors in these scenarios are parse errors. The tests compare only whether there is an error, and not its message.
    failed: (error ?? '') !== '',
    events: events ?? [],
    counts: counts ?? {},
    snapshots: Object.fromEntries(Object.entries(snapshots).map(([name, snapshot]) => [name, withLists(snapshot)])),
  }));
}

function reportOf(report: PassReport): object {
  const findings = report.findings.filter(({ type }) => COUNTED.includes(type));
  return {
    failed: report.errors.length > 0,
    events: report.findings.flatMap(({ event }) => {
      if (event === undefined) return [];
      const { regarding, reason, action, note } = event;
      return [{ service: `${regarding.namespace}/${regarding.name}`, type: 'Warning', reason, action, note }];
    }),
    counts: countsByType({ ...report, findings }),
  };
}

async function snapshotsOf({ cluster, keys }: GoldenRepair): Promise<object> {
  const snapshots: Record<string, object> = {};
  for (const [name, key] of Object.entries(keys)) {
    const stored = await cluster.stored(key);
    if (stored !== undefined) snapshots[name] = shown(stored, emptyRange(key, stored.range));
  }
  return snapshots;
}

function shown({ range, data }: StoredRange, named: RangeAllocator | Refusal): object {
  const allocated = isRefused(named) ? [] : bitsOf(data).map((bit) => named.itemAt(bit));
  return withLists({ range, data: Buffer.from(data).toString('base64'), allocated });
}

function withLists({ range, data = '', allocated }: ExpectedSnapshot): ExpectedSnapshot {
  return { range, data, allocated: allocated ?? [] };
}

interface Family {
  readonly cidr: string;
  readonly snapshot?: GoldenSnapshot | null;
}

interface Scenario {
  readonly primary: Family;
  readonly secondary?: Family | null;
  readonly runs: readonly GoldenRun[];
}

const { primary: PRIMARY, secondary: SECONDARY } = RANGE_KEYS;

async function clusterOf({ primary, secondary }: Scenario): Promise<PassWorld> {
  const ranges = secondary ? ([primary.cidr, secondary.cidr] as const) : ([primary.cidr] as const);
  const cluster = new PassWorld({ allocator: 'table', serviceClusterIPRanges: ranges });
  if (primary.snapshot) await cluster.store(PRIMARY, snapshotOf(primary.snapshot, ipRange(primary.cidr)));
  if (secondary?.snapshot) await cluster.store(SECONDARY, snapshotOf(secondary.snapshot, ipRange(secondary.cidr)));
  return cluster;
}

describe('cluster IP repair', () => {
  goldenTests<Scenario, readonly ExpectedRun[]>(
    'repair-cluster-ips.jsonl',
    'the cluster IP repair has the results of upstream: $scenario.name',
    async ({ scenario, expected }) => {
      const keys = { primary: PRIMARY, secondary: SECONDARY };
      const repair = { loop: clusterIpRepair, cluster: await clusterOf(scenario), keys };
      expect(await answersTo(repair, scenario.runs)).toEqual(expectedAnswers(expected));
    },
  );
});

interface PortScenario {
  readonly portRange: string;
  readonly snapshot?: GoldenSnapshot | null;
  readonly runs: readonly GoldenRun[];
}

async function clusterOfPorts({ portRange: text, snapshot }: PortScenario): Promise<PassWorld> {
  const cluster = new PassWorld({ allocator: 'table', serviceNodePortRange: text });
  if (snapshot) await cluster.store(RANGE_KEYS.nodePorts, snapshotOf(snapshot, portRange(text)));
  return cluster;
}

describe('node port repair', () => {
  goldenTests<PortScenario, readonly ExpectedRun[]>(
    'repair-node-ports.jsonl',
    'the node port repair has the results of upstream: $scenario.name',
    async ({ scenario, expected }) => {
      const keys = { nodePorts: RANGE_KEYS.nodePorts };
      const repair = { loop: nodePortRepair, cluster: await clusterOfPorts(scenario), keys };
      expect(await answersTo(repair, scenario.runs)).toEqual(expectedAnswers(expected));
    },
  );
});
