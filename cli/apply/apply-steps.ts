import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { registerCluster, sameSpec, unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import type { ClusterList, RegisteredCluster } from '../../lib/table/clusters.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { oneByOne, type Progressed } from '../change-clusters.ts';
import type { Cli } from '../cli.ts';
import { EXIT, exitCodeOf } from '../errors.ts';
import type { Output } from '../output.ts';
import { differenceLine, type FieldDifference, specDifference } from '../spec/written-spec.ts';
import type { Style } from '../terminal.ts';
import type { SpecFile } from './spec-files.ts';

export interface ApplyStep {
  readonly name: string;
  readonly action: 'create' | 'change' | 'keep' | 'remove';
  readonly intention: string;
  /** The file with the spec. Absent if the cluster is to be removed. */
  readonly file?: SpecFile;
  /** The current registration. Absent if the cluster is not registered, or the registration cannot be read. */
  readonly before?: RegisteredCluster;
  readonly differences?: readonly FieldDifference[];
}

export function planApply(
  files: readonly SpecFile[],
  { clusters, unreadable }: Pick<ClusterList, 'clusters' | 'unreadable'>,
  prune: boolean,
): readonly ApplyStep[] {
  const known = new Map(clusters.map((cluster) => [cluster.spec.name, cluster]));
  const broken = new Set(unreadable.map(({ name }) => name));
  const planned = files.map((file) => stepFor(file, known.get(file.spec.name), broken.has(file.spec.name)));
  const named = new Set(planned.map(({ name }) => name));
  const removed = prune ? clusters.filter(({ spec }) => !named.has(spec.name)) : [];
  const intention = 'to be removed: it is in no file';
  return [
    ...planned,
    ...removed.map((before) => ({ name: before.spec.name, action: 'remove', before, intention }) as const),
  ];
}

function stepFor(file: SpecFile, before: RegisteredCluster | undefined, isUnreadable: boolean): ApplyStep {
  const { name } = file.spec;
  if (before === undefined) {
    const created = `to be created (${summaryOf(file.spec)})`;
    const intention = isUnreadable ? 'to be replaced: its registration cannot be read' : created;
    return { name, action: 'create', file, intention };
  }
  if (sameSpec(before.spec, file.spec)) return { name, action: 'keep', file, before, intention: 'unchanged' };
  const differences = specDifference(before.spec, file.spec);
  return { name, action: 'change', file, before, differences, intention: 'to be changed' };
}

function summaryOf({ mode, allocator, serviceClusterIPRanges, apiServers }: ClusterSpec): string {
  const servers = `${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}`;
  return `mode ${mode}, allocator ${allocator}, ${serviceClusterIPRanges.join(',')}, ${servers}`;
}

/** Writes the steps one after the other. Refuses a step if the registration of its cluster has changed since it was planned. */
export async function applySteps(
  cli: Cli,
  steps: readonly ApplyStep[],
): Promise<{ readonly progressed: Progressed<ApplyStep>; readonly outcomes: ReadonlyMap<string, StepOutcome> }> {
  const outcomes = new Map<string, StepOutcome>();
  const progressed = await oneByOne(cli, steps, async (step, table) => {
    const outcome = await outcomeOf(step, table);
    outcomes.set(step.name, outcome);
    if (!cli.output.isForPrograms) cli.output.lines([outcomeLine(step, outcome)]);
  });
  const { failed } = progressed;
  if (failed !== undefined) outcomes.set(failed.item.name, { outcome: 'failed', error: failed.error });
  return { progressed, outcomes };
}

interface StepOutcome {
  readonly outcome: 'written' | 'removed' | 'refused' | 'failed';
  readonly generation?: number;
  readonly error?: unknown;
}

async function outcomeOf({ name, file, before }: ApplyStep, table: KeyValueTable): Promise<StepOutcome> {
  const replaces = before?.generation ?? 'none';
  try {
    if (file === undefined) {
      await updateCluster(table, name, unregistered, { replaces });
      return { outcome: 'removed' };
    }
    const { generation } = await registerCluster(table, file.spec, { replaces });
    return { outcome: 'written', generation };
  } catch (error) {
    if (error instanceof TableError && exitCodeOf(error) === EXIT.configuration) return { outcome: 'refused', error };
    throw error;
  }
}

const SHOWN: Readonly<Record<ApplyStep['action'], { readonly style?: Style; readonly counted: string }>> = {
  create: { style: 'green', counted: 'to be created' },
  change: { style: 'yellow', counted: 'to be changed' },
  remove: { style: 'red', counted: 'to be removed' },
  keep: { counted: 'unchanged' },
};

export function planLines(steps: readonly ApplyStep[], paint: Output['paint']): string[] {
  return steps.flatMap(({ name, action, intention, differences = [] }) => {
    const { style } = SHOWN[action];
    const line = `${name}: ${intention}`;
    return [style === undefined ? line : paint(style, line), ...differences.map((one) => `    ${differenceLine(one)}`)];
  });
}

/** Returns a line such as `1 to be removed, 39 unchanged`. */
export function countLine(steps: readonly ApplyStep[]): string {
  const counts = Object.entries(SHOWN).map(
    ([action, { counted }]) => [steps.filter((step) => step.action === action).length, counted] as const,
  );
  return counts.flatMap(([count, words]) => (count > 0 ? [`${count} ${words}`] : [])).join(', ');
}

function outcomeLine({ name, action }: ApplyStep, { outcome, generation, error }: StepOutcome): string {
  if (error !== undefined) return `${name} not written: ${describeError(error).message}`;
  if (outcome === 'removed') return `${name} removed; its endpoints stay unchanged`;
  return `${name} ${action === 'create' ? 'created' : 'changed'}, generation ${generation}`;
}

export function plainApplied(steps: readonly ApplyStep[], outcomes: ReadonlyMap<string, StepOutcome>) {
  return steps.map(({ name, action, file, before, differences }) => {
    const {
      outcome = action === 'keep' ? 'unchanged' : 'notWritten',
      generation = before?.generation,
      error,
    } = outcomes.get(name) ?? {};
    return {
      name,
      file: file?.place,
      action,
      outcome,
      generation,
      differences,
      error: error === undefined ? undefined : describeError(error),
    };
  });
}
