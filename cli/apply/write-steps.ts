import { registerCluster, unregistered, updateCluster } from '../../lib/table/cluster-registration.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { type KeyValueTable, TableError } from '../../lib/table/key-value-table.ts';
import { describeError } from '../../lib/telemetry/telemetry.ts';
import { oneByOne, type Progressed } from '../change-clusters.ts';
import type { Cli } from '../cli.ts';
import { EXIT, exitCodeOf } from '../errors.ts';
import type { Output } from '../output.ts';
import { differenceLine } from '../spec/written-spec.ts';
import type { Style } from '../terminal.ts';
import type { ApplyStep } from './plan.ts';

/** Writes the steps one after the other, but no step whose registration changed after its difference was printed. */
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
    return { outcome: 'written', cluster: await registerCluster(table, step.file.spec, { replaces }) };
  } catch (error) {
    if (error instanceof TableError && exitCodeOf(error) === EXIT.configuration) return { outcome: 'refused', error };
    throw error;
  }
}

type StepOutcome =
  | { readonly outcome: 'written'; readonly cluster: RegisteredCluster }
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

function outcomeLine({ name, action }: ApplyStep, outcome: StepOutcome): string {
  switch (outcome.outcome) {
    case 'written':
      return `${name} ${action === 'create' ? 'created' : 'changed'}, generation ${outcome.cluster.generation}`;
    case 'removed':
      return `${name} removed; its endpoints stay unchanged`;
    case 'refused':
    case 'failed':
      return `${name} not written: ${describeError(outcome.error).message}`;
  }
}

export function plainApplied(steps: readonly ApplyStep[], outcomes: ReadonlyMap<string, StepOutcome>) {
  return steps.map((step) => {
    const outcome = outcomes.get(step.name);
    return {
      name: step.name,
      file: 'file' in step ? step.file.place : undefined,
      action: step.action,
      outcome: outcome?.outcome ?? (step.action === 'keep' ? 'unchanged' : 'notWritten'),
      generation: generationOf(step, outcome),
      differences: step.action === 'change' ? step.differences : undefined,
      error: outcome !== undefined && 'error' in outcome ? describeError(outcome.error) : undefined,
    };
  });
}

function generationOf(step: ApplyStep, outcome: StepOutcome | undefined): number | undefined {
  if (outcome?.outcome === 'written') return outcome.cluster.generation;
  return 'before' in step ? step.before.generation : undefined;
}
