import { observeOnly } from '../kubernetes/observe-only.ts';
import type { PassContext } from '../loops/pass.ts';
import { type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { observeRanges } from '../table/observe-ranges.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { pause, unlessAborted } from './deadline.ts';
import type { ClusterAccess, Environment } from './environment.ts';
import { tellEvents } from './pass-events.ts';
import type { PassInput } from './pass-input.ts';
import type { EndedPass } from './pass-record.ts';
import { previousMode } from './pass-record.ts';

/** One run of one loop for one cluster, and the events of what it found. Never throws. */
export async function runPass(environment: Environment, input: PassInput): Promise<EndedPass> {
  const { loop, signal, startedAtMs, ownedBy } = input;
  const cluster = ownedBy === undefined ? input.cluster : observed(input.cluster);
  const passId = environment.newPassId();
  const wouldWrite: string[] = [];
  let credentialEndsSoon: boolean | undefined;
  const ended = (outcome: Pick<EndedPass, 'report' | 'events' | 'errors'>): EndedPass => ({
    passId,
    mode: cluster.spec.mode,
    startedAtMs,
    durationMs: environment.nowMs() - startedAtMs,
    wouldWrite: [...wouldWrite],
    ownedBy,
    credentialEndsSoon,
    ...outcome,
  });
  try {
    const { report, kubernetes } = await unlessAborted(signal, async () => {
      const access = await environment.connect(cluster.spec, { loop: loop.id, signal, warn: input.warn });
      credentialEndsSoon = access.credentialEndsSoon;
      const context = passContext(environment, { ...input, cluster }, passId, access, (description) =>
        wouldWrite.push(description),
      );
      return { report: await loop.run(context), kubernetes: context.kubernetes };
    });
    const events = await tellEvents(environment, input, kubernetes, report.findings);
    return ended({ report, events, errors: report.errors });
  } catch (error) {
    return ended({ errors: [error] });
  }
}

function passContext(
  environment: Environment,
  { cluster, previous, signal, ownedBy }: PassInput,
  passId: string,
  { kubernetes, probe }: ClusterAccess,
  wouldWrite: (description: string) => void,
): PassContext {
  const { spec, generation, rangesGeneration } = cluster;
  const owners = environment.table(signal);
  const { nowMs, newPassId } = environment;
  const table = ownedBy === undefined ? owners : unwrittenTable(owners, { nowMs, newWriteId: newPassId });
  const observing = spec.mode === 'observe';
  const mode = previousMode(previous);
  return {
    spec,
    isSpecCurrent: async () => (await readCluster(owners, spec.name))?.generation === generation,
    rangesGeneration,
    table: observing && spec.allocator === 'table' ? observeRanges(table, wouldWrite) : table,
    kubernetes: observing ? observeOnly(kubernetes, wouldWrite) : kubernetes,
    probe,
    resolveHost: environment.resolveHost(signal),
    passId,
    nowMs,
    startBudget: environment.startDeadline,
    pause: (ms) => pause(environment.startDeadline(ms), signal),
    ...(mode !== undefined && { previousMode: mode }),
    state: previous?.state,
    wouldWrite,
  };
}

/** Whose owner is another stack is only observed, whatever its spec says. */
function observed(cluster: RegisteredCluster): RegisteredCluster {
  return { ...cluster, spec: { ...cluster.spec, mode: 'observe' } };
}
