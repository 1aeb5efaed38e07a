import { differenceLine } from '../../lib/cluster/spec-difference.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import type { Output, Plain } from '../output.ts';
import type { Style } from '../terminal.ts';
import type { Observed } from './observed.ts';
import { plainObserved } from './observed-report.ts';
import { intention, nameOf, type Step } from './plan.ts';

/** What became of a step. Absent: nothing was begun. */
export type Outcome =
  | { readonly outcome: 'written'; readonly cluster: RegisteredCluster }
  | { readonly outcome: 'removed' }
  | { readonly outcome: 'refused' | 'failed'; readonly error: unknown };

/** What is known of each cluster once a command ends, wherever it ended. */
export interface Applied {
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly observed: ReadonlyMap<string, readonly Observed[]>;
}

const STYLES: Readonly<Record<Step['action'], Style | undefined>> = {
  create: 'green',
  change: 'yellow',
  keep: undefined,
  remove: 'red',
};

/** What would be done, field by field. */
export function planLines(steps: readonly Step[], paint: Output['paint']): string[] {
  return steps.flatMap((step) => {
    const style = STYLES[step.action];
    const line = `${nameOf(step)}: ${intention(step)}`;
    const fields = step.action === 'change' ? step.differences.map((one) => `    ${differenceLine(one)}`) : [];
    return [style === undefined ? line : paint(style, line), ...fields];
  });
}

/** What was done of a step, as kubectl says it. */
export function outcomeLine(step: Step, outcome: Outcome): string {
  const name = nameOf(step);
  switch (outcome.outcome) {
    case 'written':
      return `${name} ${step.action === 'create' ? 'created' : 'changed'}, generation ${outcome.cluster.generation}`;
    case 'removed':
      return `${name} removed; its endpoints stay as they are`;
    case 'refused':
    case 'failed':
      return `${name} not written: ${describeError(outcome.error).message}`;
  }
}

export function plainApplied(steps: readonly Step[], { outcomes, observed }: Applied): Plain {
  return steps.map((step) => {
    const name = nameOf(step);
    const outcome = outcomes.get(name);
    const passes = observed.get(name);
    const generation = generationOf(step, outcome);
    return {
      name,
      ...('file' in step && { file: step.file.place }),
      action: step.action,
      outcome: outcome?.outcome ?? (step.action === 'keep' ? 'unchanged' : 'notWritten'),
      ...(generation !== undefined && { generation }),
      ...(step.action === 'change' && { differences: step.differences.map((difference) => ({ ...difference })) }),
      ...(outcome !== undefined && 'error' in outcome && { error: { ...describeError(outcome.error) } }),
      ...(passes !== undefined && { passes: passes.map(plainObserved) }),
    };
  });
}

function generationOf(step: Step, outcome: Outcome | undefined): number | undefined {
  if (outcome?.outcome === 'written') return outcome.cluster.generation;
  return 'before' in step ? step.before.generation : undefined;
}
