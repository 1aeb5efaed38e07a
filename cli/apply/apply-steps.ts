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

export type ApplyStep = {
  readonly name: string;
  readonly intention: string;
} & (
  | { readonly action: 'create'; readonly file: SpecFile }
  | ({ readonly action: 'change'; readonly differences: readonly FieldDifference[] } & Registered)
  | ({ readonly action: 'keep' } & Registered)
  | { readonly action: 'remove'; readonly before: RegisteredCluster }
);

interface Registered {
  readonly file: SpecFile;
  readonly before: RegisteredCluster;
}

export function planApply(
  files: readonly SpecFile[],
  { clusters, unreadable }: Pick<ClusterList, 'clusters' | 'unreadable'>,
  prune: boolean,
): readonly ApplyStep[] {
  const known = new Map(clusters.map((cluster) => [cluster.spec.name, cluster]));
  const broken = new Set(unreadable.map(({ name }) => name));
  const planned = files.map((file) => stepFor(file, known.get(file.spec.name), broken));
  const named = new Set(planned.map(({ name }) => name));
  const removed = prune ? clusters.filter(({ spec }) => !named.has(spec.name)) : [];
  const intention = 'to be removed: it is in no file';
  return [
    ...planned,
    ...removed.map((before) => ({ name: before.spec.name, action: 'remove', before, intention }) as const),
  ];
}

function stepFor(file: SpecFile, before: RegisteredCluster | undefined, broken: ReadonlySet<string>): ApplyStep {
  const { name } = file.spec;
  if (broken.has(name)) {
    return { name, action: 'create', file, intention: 'to be replaced: its registration cannot be read' };
  }
  if (before === undefined) {
    return { name, action: 'create', file, intention: `to be created (${summaryOf(file.spec)})` };
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

async function outcomeOf(step: ApplyStep, table: KeyValueTable): Promise<StepOutcome> {
  try {
    if (step.action === 'remove') {
      const { spec, generation } = step.before;
      await updateCluster(table, spec.name, unregistered, { replaces: generation });
      return { outcome: 'removed' };
    }
    const replaces = step.action === 'create' ? 'none' : step.before.generation;
    const { generation } = await registerCluster(table, step.file.spec, { replaces });
    return { outcome: 'written', generation };
  } catch (error) {
    if (error instanceof TableError && exitCodeOf(error) === EXIT.configuration) return { outcome: 'refused', error };
    throw error;
  }
}

type StepOutcome =
  | { readonly outcome: 'written'; readonly generation: number }
  | { readonly outcome: 'removed' }
  | { readonly outcome: 'refused' | 'failed'; readonly error: unknown };

const STYLES: Readonly<Record<ApplyStep['action'], Style | undefined>> = {
  create: 'green',
  change: 'yellow',
  keep: undefined,
  remove: 'red',
};

export function planLines(steps: readonly ApplyStep[], paint: Output['paint']): string[] {
  return steps.flatMap((step) => {
    const style = STYLES[step.action];
    const line = `${step.name}: ${step.intention}`;
    const fields = step.action === 'change' ? step.differences.map((one) => `    ${differenceLine(one)}`) : [];
    return [style === undefined ? line : paint(style, line), ...fields];
  });
}

const COUNTED = {
  create: 'to be created',
  change: 'to be changed',
  remove: 'to be removed',
  keep: 'unchanged',
} as const satisfies Readonly<Record<ApplyStep['action'], string>>;

/** Returns a line such as `1 to be removed, 39 unchanged`. */
export function countLine(steps: readonly ApplyStep[]): string {
  const counts = Object.entries(COUNTED).map(
    ([action, words]) => [steps.filter((step) => step.action === action).length, words] as const,
  );
  return counts.flatMap(([count, words]) => (count > 0 ? [`${count} ${words}`] : [])).join(', ');
}

function outcomeLine({ name, action }: ApplyStep, outcome: StepOutcome): string {
  switch (outcome.outcome) {
    case 'written':
      return `${name} ${action === 'create' ? 'created' : 'changed'}, generation ${outcome.generation}`;
    case 'removed':
      return `${name} removed; its endpoints stay unchanged`;
    case 'refused':
    case 'failed':
      return `${name} not written: ${describeError(outcome.error).message}`;
  }
}

export function plainApplied(steps: readonly ApplyStep[], outcomes: ReadonlyMap<string, StepOutcome>) {
  return steps.map((step) => {
    const { outcome = step.action === 'keep' ? 'unchanged' : 'notWritten', ...result } = outcomes.get(step.name) ?? {};
    const before = 'before' in step ? step.before.generation : undefined;
    return {
      name: step.name,
      file: 'file' in step ? step.file.place : undefined,
      action: step.action,
      outcome,
      generation: 'generation' in result ? result.generation : before,
      differences: step.action === 'change' ? step.differences : undefined,
      error: 'error' in result ? describeError(result.error) : undefined,
    };
  });
}
