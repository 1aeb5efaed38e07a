import type { RangeAllocator } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../../lib/allocator/refusal.ts';
import { bitsOf, fromBits, type RangeSnapshot } from '../../lib/allocator/snapshot-bytes.ts';
import type { FindingType } from '../../lib/cluster/finding.ts';
import type { RangeKey } from '../../lib/cluster/spec-ranges.ts';
import type { LoopDefinition, PassReport } from '../../lib/loops/pass.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { MakeRange } from '../../lib/repair/walk.ts';
import type { RepairCluster } from './repair-cluster.ts';
import { claimOf, type ServiceJson } from './services.ts';

export interface GoldenRun {
  readonly services?: readonly ServiceJson[] | null;
}

/** A snapshot as scenarios give it: by its items, or literally. */
export interface GoldenSnapshot {
  readonly allocated?: readonly string[];
  readonly range?: string;
  readonly data?: string;
}

interface ExpectedSnapshot {
  readonly range: string;
  readonly data?: string;
  readonly allocated?: readonly string[] | null;
}

export interface ExpectedRun {
  readonly error?: string;
  readonly events?:
    | readonly {
        readonly service: string;
        readonly type: string;
        readonly reason: string;
        readonly action: string;
        readonly note: string;
      }[]
    | null;
  readonly counts?: Readonly<Record<string, number>> | null;
  readonly snapshots: Readonly<Record<string, ExpectedSnapshot>>;
}

/** What tells one kind of scenario from the other. */
export interface GoldenRepair {
  readonly loop: LoopDefinition;
  readonly cluster: RepairCluster;
  /** By the name of the snapshot in what is expected. */
  readonly keys: Readonly<Record<string, RangeKey>>;
  readonly makeRange: MakeRange<string> | MakeRange<number>;
}

/** The labels of the original's counters; what else is found is ours alone. */
const COUNTED: readonly FindingType[] = ['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown', 'invalid'];

export function snapshotOf(
  snapshot: GoldenSnapshot,
  range: { readonly spec: string; indexOf(item: string): number | undefined },
): RangeSnapshot {
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

/** One pass after another, an interval apart, and what each reported and stored. */
export async function answersTo(repair: GoldenRepair, runs: readonly GoldenRun[]): Promise<object[]> {
  const answers: object[] = [];
  for (const { services } of runs) {
    repair.cluster.services = (services ?? []).map(claimOf);
    const report = await repair.cluster.pass(repair.loop);
    answers.push({ ...reportOf(report), snapshots: await snapshotsOf(repair) });
  }
  return answers;
}

/** What is expected, in the form of {@link answersTo}: an absent list and an empty one are the same. */
export function expectedAnswers(runs: readonly ExpectedRun[]): object[] {
  return runs.map(({ error, events, counts, snapshots }) => ({
    // The only errors that scenarios reach are of parsing, and of those only that there is one counts.
    failed: (error ?? '') !== '',
    events: events ?? [],
    counts: counts ?? {},
    snapshots: Object.fromEntries(
      Object.entries(snapshots).map(([name, { range, data, allocated }]) => [
        name,
        { range, data: data ?? '', ...(allocated && allocated.length > 0 && { allocated }) },
      ]),
    ),
  }));
}

function reportOf({ findings, errors }: PassReport): object {
  const counts: Partial<Record<FindingType, number>> = {};
  for (const { type } of findings) if (COUNTED.includes(type)) counts[type] = (counts[type] ?? 0) + 1;
  return {
    failed: errors.length > 0,
    events: findings.flatMap(({ event }) => {
      if (event === undefined) return [];
      const { regarding, reason, action, note } = event;
      return [{ service: `${regarding.namespace}/${regarding.name}`, type: 'Warning', reason, action, note }];
    }),
    counts,
  };
}

async function snapshotsOf({ cluster, keys, makeRange }: GoldenRepair): Promise<object> {
  const snapshots: Record<string, object> = {};
  for (const [name, key] of Object.entries(keys)) {
    const stored = await cluster.stored(key);
    if (stored !== undefined) snapshots[name] = shown(stored, makeRange(stored.range));
  }
  return snapshots;
}

function shown({ range, data }: StoredRange, named: RangeAllocator<string | number> | Refusal): object {
  const base64 = Buffer.from(data).toString('base64');
  if (isRefused(named)) return { range, data: base64 };
  const allocated = [...bitsOf(data)].map((bit) => String(named.itemAt(bit)));
  return { range, data: base64, ...(allocated.length > 0 && { allocated }) };
}
