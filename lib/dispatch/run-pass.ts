import type { Finding } from '../cluster/finding.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { planEvents } from '../kubernetes/events.ts';
import { observeOnly } from '../kubernetes/observe-only.ts';
import { type EventsReport, writeEvents } from '../kubernetes/write-events.ts';
import type { LoopDefinition, PassContext } from '../loops/pass.ts';
import { type RegisteredCluster, readCluster } from '../table/clusters.ts';
import { observeRanges } from '../table/observe-ranges.ts';
import type { RunRecord } from '../table/run-records.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { pause, unlessAborted } from './deadline.ts';
import type { ClusterAccess, Environment } from './environment.ts';
import { type EndedPass, previousMode } from './pass-record.ts';

/** What one pass is made of, besides the environment. */
export interface PassInput {
  readonly loop: LoopDefinition;
  readonly cluster: RegisteredCluster;
  /** The record of the loop's last pass. */
  readonly previous: RunRecord | undefined;
  readonly startedAtMs: number;
  /** Ends every call of the pass; what is under way all the same is left to itself. */
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  /** Another stack, which owns the cluster: this pass writes nothing at all. */
  readonly ownedBy?: string | undefined;
}

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
    const events = await writePassEvents(environment, input, kubernetes, report.findings);
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

/** Writes the events of what a pass found, as far as its time allows. Never throws: an event is not worth a pass. */
async function writePassEvents(
  environment: Environment,
  { loop, cluster, previous, signal }: PassInput,
  kubernetes: ClusterPort,
  findings: readonly Finding[],
): Promise<EventsReport> {
  const plan = planEvents({
    drafts: findings.flatMap(({ event }) => event ?? []),
    loop: loop.id,
    instance: environment.reportingInstance,
    previous: previous?.events ?? {},
    nowMs: environment.nowMs(),
    cap: cluster.spec.maxEventsPerPass,
  });
  // A pass that has used up its time, and has none to write, has missed none.
  if (plan.writes.length === 0) return writeEvents(kubernetes, plan);
  try {
    return await unlessAborted(signal, () => writeEvents(kubernetes, plan));
  } catch (error) {
    const errors = [error instanceof Error ? error : new Error('Events were not written', { cause: error })];
    // Some may have been: the next pass finds them there and goes on with their series.
    return { written: 0, dropped: plan.dropped + plan.writes.length, errors, sightings: previous?.events ?? {} };
  }
}
