import { type EndedPass, recordPass } from '../../lib/dispatch/record-pass.ts';
import { runPass } from '../../lib/dispatch/run-pass.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { writesOf } from '../../lib/loops/writes.ts';
import { PASS_BUDGET_MS, withDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';

export interface RunOnceRequest {
  readonly cluster: RegisteredCluster;
  readonly loop: LoopDefinition;
  /** True: the pass writes neither to the cluster nor to the table. */
  readonly dryRun: boolean;
  readonly evenIfPaused?: boolean;
}

/**
 * Runs a pass as the loop's function does. Does not record a failed pass without changes, because the cause may be only the
 * connection from this host.
 */
export async function runOnce(environment: Environment, request: RunOnceRequest): Promise<EndedPass> {
  const { cluster, loop, dryRun, evenIfPaused = false } = request;
  const { spec } = cluster;
  return withDeadline(environment, PASS_BUDGET_MS[loop.id], async (signal) => {
    const startedAtMs = environment.nowMs();
    const last = await readRunRecord(environment.table(signal), spec.name, loop.id);
    const { log } = environment.telemetry({ loop: loop.id });
    const pass = await runPass(environment, {
      loop,
      cluster,
      previous: last?.record,
      startedAtMs,
      signal,
      warn: (text) => log('warn', text, { cluster: spec.name }),
      writes: dryRun ? 'none' : writesOf(spec.mode),
      evenIfPaused,
    });
    const isIdle = pass.errors.length > 0 && !pass.report?.changes.length;
    if (dryRun || isIdle) return pass;
    return recordPass(environment, loop.id, spec, pass, last, { always: true });
  });
}
