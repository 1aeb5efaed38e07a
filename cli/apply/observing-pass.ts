import type { EndedPass } from '../../lib/dispatch/record-pass.ts';
import { runPass } from '../../lib/dispatch/run-pass.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { PASS_BUDGET_MS } from '../../lib/runtime/budgets.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { isNoWayIn, type Observed } from './observed.ts';

const ALL_LOOPS: readonly LoopDefinition[] = [systemNamespaces, kubernetesService, clusterIpRepair, nodePortRepair];

/** One pass of each loop that writes nothing: not to the cluster, and not to the table. Never throws. */
export async function observeOnce(environment: Environment, cluster: RegisteredCluster): Promise<Observed[]> {
  const observed: Observed[] = [];
  for (const loop of ALL_LOOPS) {
    const skipped = observed.some(({ errors }) => errors.some(isNoWayIn));
    const nothing = { loop: loop.id, findings: [], wouldWrite: [], errors: [] };
    observed.push(skipped ? { ...nothing, skipped } : await observeLoop(environment, cluster, loop));
  }
  return observed;
}

async function observeLoop(
  environment: Environment,
  cluster: RegisteredCluster,
  loop: LoopDefinition,
): Promise<Observed> {
  const { signal, cancel } = environment.startDeadline(PASS_BUDGET_MS[loop.id]);
  try {
    const pass = await passOf(environment, cluster, loop, signal);
    const wouldWrite = [...new Set(pass.wouldWrite)];
    return { loop: loop.id, findings: pass.report?.findings ?? [], wouldWrite, errors: pass.errors, skipped: false };
  } catch (error) {
    return { loop: loop.id, findings: [], wouldWrite: [], errors: [error], skipped: false };
  } finally {
    cancel();
  }
}

async function passOf(
  environment: Environment,
  cluster: RegisteredCluster,
  loop: LoopDefinition,
  signal: AbortSignal,
): Promise<EndedPass> {
  const { spec, owner } = cluster;
  const last = await readRunRecord(environment.table(signal), spec.name, loop.id);
  const { log } = environment.telemetry({ loop: loop.id });
  return runPass(environment, {
    loop,
    cluster,
    previous: last?.record,
    startedAtMs: environment.nowMs(),
    signal,
    warn: (text) => log('warn', text, { cluster: spec.name }),
    // As the passes of any other stack than the owner, which write nothing at all.
    ownedBy: owner?.stack ?? '',
  });
}
