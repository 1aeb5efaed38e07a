import { registerCluster, unregisterCluster } from '../../lib/table/cluster-registration.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import type { Cli } from '../cli.ts';
import { exitCodeOf } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { oneByOne, type Progressed } from '../one-by-one.ts';
import { nameOf, type Step } from './plan.ts';
import type { Outcome } from './report.ts';

/**
 * Writes the steps one after the other, each only over what its difference was shown for. What somebody else changed
 * meanwhile is told and left as it is; the others go on.
 */
export async function applySteps(
  cli: Cli,
  steps: readonly Step[],
  tell: (step: Step, outcome: Outcome) => void,
): Promise<{ readonly progressed: Progressed<Step>; readonly outcomes: ReadonlyMap<string, Outcome> }> {
  const outcomes = new Map<string, Outcome>();
  const progress = cli.progress('writing');
  const record = (step: Step, outcome: Outcome) => {
    outcomes.set(nameOf(step), outcome);
    tell(step, outcome);
  };
  try {
    const progressed = await oneByOne(cli, steps, nameOf, async (step, table) => {
      progress.tell(`writing ${outcomes.size + 1} of ${steps.length}: ${nameOf(step)}`);
      record(step, await outcomeOf(step, table));
    });
    const { failed } = progressed;
    if (failed !== undefined) outcomes.set(nameOf(failed.item), { outcome: 'failed', error: failed.error });
    return { progressed, outcomes };
  } finally {
    progress.end();
  }
}

async function outcomeOf(step: Step, table: KeyValueTable): Promise<Outcome> {
  try {
    if (step.action === 'remove') {
      const { spec, generation } = step.before;
      await unregisterCluster(table, spec.name, { replaces: generation });
      return { outcome: 'removed' };
    }
    const replaces = step.action === 'create' ? 'none' : step.before.generation;
    return { outcome: 'written', cluster: await registerCluster(table, step.file.spec, { replaces }) };
  } catch (error) {
    if (error instanceof TableError && exitCodeOf(error) === EXIT.configuration) return { outcome: 'refused', error };
    throw error;
  }
}
