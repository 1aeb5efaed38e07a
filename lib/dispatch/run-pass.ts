import type { ClusterPort, Prober } from '../kubernetes/cluster-port.ts';
import { type EventsReport, planEvents, writeEvents } from '../kubernetes/events.ts';
import type { LoopDefinition, PassContext, PassReport } from '../loops/pass.ts';
import { OlderSpecError, portsFor, type Writes } from '../loops/writes.ts';
import { pause } from '../runtime/deadline.ts';
import type { ClusterAccess, Environment } from '../runtime/environment.ts';
import type { Invocation } from '../runtime/invocation.ts';
import { otherOwner, type RegisteredCluster, readCluster, readPauseOfAll } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import type { RunRecord } from '../table/run-records.ts';
import { unlessAborted } from '../util/async.ts';
import { addressLookUp } from './address-look-up.ts';
import type { ShortClusterList } from './cluster-list.ts';
import { isWithoutAnswer, pauseInForce, spacingMs } from './due.ts';
import type { EndedPass } from './record-pass.ts';

export interface LoopInvocation extends Invocation {
  readonly loop: LoopDefinition;
  /** The last cluster list of this process. */
  readonly memory: { last?: { readonly list: ShortClusterList; readonly readAtMs: number } };
}

export interface PassInput {
  readonly loop: LoopDefinition;
  readonly cluster: RegisteredCluster;
  readonly previous: RunRecord | undefined;
  readonly startedAtMs: number;
  /** Ends every call of the pass. A call that ignores the signal is abandoned. */
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  readonly writes: Writes;
  readonly evenIfPaused?: boolean;
}

/** Runs one loop for one cluster, and writes the events of its findings. Never throws. */
export async function runPass(environment: Environment, input: PassInput): Promise<EndedPass> {
  const { loop, cluster, signal, startedAtMs, writes } = input;
  const passId = environment.newPassId();
  const wouldWrite: string[] = [];
  let credentialEndsSoon: boolean | undefined;
  let isAnyProbeAnswered = false;
  const ended = (outcome: Pick<EndedPass, 'report' | 'events' | 'errors'>): EndedPass => ({
    passId,
    mode: writes === 'all' ? 'enforce' : 'observe',
    startedAtMs,
    durationMs: environment.nowMs() - startedAtMs,
    wouldWrite: [...wouldWrite],
    credentialEndsSoon,
    withoutAnswer: isWithoutAnswer(outcome.errors[0], isAnyProbeAnswered)
      ? (input.previous?.withoutAnswer ?? 0) + 1
      : 0,
    ...outcome,
  });
  try {
    const connect: Environment['connect'] = async (spec, options) => {
      const connected = await environment.connect(spec, options);
      credentialEndsSoon ||= connected.credentialEndsSoon;
      return connected;
    };
    const { report, kubernetes } = await unlessAborted(signal, async () => {
      const access = await connect(cluster.spec, { loop: loop.id, signal, warn: input.warn });
      const probe: Prober = async (target, given) => {
        const reply = await access.probe(target, given);
        isAnyProbeAnswered ||= reply.kind === 'status';
        return reply;
      };
      const describe = (description: string) => wouldWrite.push(description);
      const context = passContext({ ...environment, connect }, input, passId, { ...access, probe }, describe);
      const report = await loop.run(context);
      wouldWrite.push(...(report.wouldWrite ?? []));
      return { report, kubernetes: context.kubernetes };
    });
    const events = await writePassEvents(environment, input, kubernetes, report);
    return ended({ report, events, errors: report.errors });
  } catch (error) {
    return ended({ errors: [error] });
  }
}

function passContext(
  environment: Environment,
  input: PassInput,
  passId: string,
  { kubernetes, probe, controlPlane }: ClusterAccess,
  wouldWrite: (description: string) => void,
): PassContext {
  const { loop, cluster, previous, startedAtMs, signal, writes } = input;
  const { spec, rangesGeneration } = cluster;
  const { nowMs, startDeadline } = environment;
  const table = environment.table(signal);
  const confirmWrites = () => confirmRegistration(environment, input, table);
  const timing = { nowMs: startedAtMs, last: previous, backsOff: environment.tickQueue !== undefined };
  return {
    spec,
    rangesGeneration,
    ...portsFor(writes, { table, kubernetes }, spec.allocator, { nowMs, wouldWrite, confirmWrites }),
    probe,
    controlPlane,
    lookUp: addressLookUp(environment, spec, signal, input.warn),
    passId,
    nowMs,
    triesEveryMs: spacingMs(loop.id, spec, timing),
    startDeadline,
    pause: (ms) => pause(startDeadline(ms), signal),
    previous,
  };
}

/** Reads the registration and the pauses again, because they may have changed during the pass. @throws OlderSpecError */
async function confirmRegistration(
  environment: Environment,
  { cluster: { spec, generation }, evenIfPaused = false }: PassInput,
  table: KeyValueTable,
): Promise<void> {
  const { name } = spec;
  const [current, pausedAll] = await Promise.all([readCluster(table, name), readPauseOfAll(table)]);
  const owner = current && otherOwner(current, environment.stack);
  const pause = evenIfPaused ? undefined : pauseInForce([pausedAll, current?.paused], environment.nowMs());
  const ended = (what: string) => {
    const message = `${what} while this pass ran: it ended without this write, and the next pass reads the registration again`;
    return new OlderSpecError('OlderSpec', message);
  };
  if (current === undefined) throw ended(`cluster ${name} was unregistered`);
  if (current.generation !== generation) throw ended(`the spec of cluster ${name} was changed`);
  if (owner !== undefined) throw ended(`cluster ${name} was taken over by the stack ${owner}`);
  if (pause !== undefined) throw ended(`cluster ${name} was paused by ${pause.by} (${pause.reason})`);
}

async function writePassEvents(
  environment: Environment,
  { loop, cluster, previous, signal, writes }: PassInput,
  kubernetes: ClusterPort,
  { findings, events = [] }: PassReport,
): Promise<EventsReport> {
  // Passes that only observe count their events in the run record. The first pass that enforces writes these events.
  const isUnwritten = writes === 'all' && previous?.observed === true;
  const sightings = Object.fromEntries(
    Object.entries(previous?.events ?? {}).map(([name, seen]) => [
      name,
      isUnwritten ? { ...seen, lastWrittenAtMs: 0 } : seen,
    ]),
  );
  const plan = planEvents({
    drafts: [...findings.flatMap(({ event }) => event ?? []), ...events],
    loop: loop.id,
    instance: environment.reportingInstance,
    previous: sightings,
    nowMs: environment.nowMs(),
    cap: cluster.spec.maxEventsPerPass,
  });
  // There are no events to write, so a spent deadline is not an error.
  if (plan.writes.length === 0) return writeEvents(kubernetes, plan);
  try {
    return await unlessAborted(signal, () => writeEvents(kubernetes, plan));
  } catch (error) {
    // Some events may have been written. The next pass finds these events and continues their series.
    return { written: 0, dropped: plan.dropped + plan.writes.length, errors: [error], sightings };
  }
}
