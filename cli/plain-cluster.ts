import type { Pause, RegisteredCluster } from '../lib/table/clusters.ts';
import type { Plain } from './output.ts';

/** Whose a cluster is that no stack's passes have made their own. */
export const NO_STACK_YET = 'no stack yet';

/** A registration as `-o json` has it. */
export function plainCluster({ spec, generation, rangesGeneration, paused, owner }: RegisteredCluster) {
  return {
    name: spec.name,
    generation,
    rangesGeneration,
    ...(owner !== undefined && { owner: { stack: owner.stack, packaged: owner.packaged !== undefined } }),
    ...(paused !== undefined && { paused: plainPause(paused) }),
    // Data as it is in the table: a spec holds nothing that JSON does not.
    spec: JSON.parse(JSON.stringify(spec)) as Plain,
  };
}

export function plainPause({ untilMs, reason, by }: Pause) {
  return { until: new Date(untilMs).toISOString(), reason, by };
}
