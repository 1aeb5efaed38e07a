import * as z from 'zod/mini';
import { ANSWERING_MS, CONCURRENT_PASSES, DispatchError, withDeadline, withinDeadline } from '../runtime/deadline.ts';
import type { DoctorEnvironment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { clusterName, shapeFaults } from '../spec/shapes.ts';
import { listClusters, type RegisteredCluster } from '../table/clusters.ts';
import { eachOf, unlessAborted } from '../util/async.ts';
import { isoTime } from '../util/values.ts';
import { type CheckContext, checkCluster } from './check-cluster.ts';
import { checkClock, checkConcurrency, checkQueues, checkTable } from './check-stack.ts';
import { checked, type DoctorLine, fail, failed, ok, warn } from './line.ts';

export interface DoctorAnswer {
  readonly lines: readonly DoctorLine[];
  readonly ok: boolean;
}

const CLUSTER_MS = 20_000;

const request = z.strictObject({ cluster: z.optional(clusterName) });

/** Returns the handler that checks everything that the loops need. It changes nothing in a cluster. */
export function doctor(environmentOf: () => DoctorEnvironment): Handler<DoctorAnswer> {
  return (event, context) =>
    runInvocation('doctor', context, async (invocation) => {
      const parsed = request.safeParse(event ?? {});
      if (!parsed.success) {
        const expected = 'The event must be {"cluster": name}, or {} for all clusters';
        throw new DispatchError('BadEvent', `${expected}: ${shapeFaults(parsed.error, 'the event')}`);
      }
      const lines = await linesOf(parsed.data.cluster, invocation, environmentOf());
      const levels = Map.groupBy(lines, ({ level }) => level);
      const counts = {
        lines: lines.length,
        warnings: levels.get('warn')?.length ?? 0,
        failures: levels.get('fail')?.length ?? 0,
      };
      invocation.telemetry.log(counts.failures > 0 ? 'warn' : 'info', 'doctor: checks completed', counts);
      return { lines, ok: counts.failures === 0 };
    });
}

async function linesOf(
  name: string | undefined,
  invocation: Invocation,
  doctor: DoctorEnvironment,
): Promise<DoctorLine[]> {
  const { environment, remainingMs } = invocation;
  try {
    return await withinDeadline(environment, remainingMs() - ANSWERING_MS, async (signal) => {
      const common = await checkStack(invocation, doctor, signal);
      if (common.some(({ check, level }) => check === 'table' && level === 'fail')) return [...common];
      const { clusters, lines } = await chosen(name, invocation, signal);
      const { clustersPerTick } = environment;
      const sized = checkConcurrency(clusters.length, clustersPerTick, doctor.queues?.concurrency);
      const context = { environment, doctor, signal };
      const ofClusters = await eachOf(clusters, CONCURRENT_PASSES, (cluster) => inTime(cluster, invocation, context));
      return [...common, ...sized, ...lines, ...ofClusters.flat()];
    });
  } catch (error) {
    return [failed('clusters', error)];
  }
}

async function checkStack(
  { environment }: Invocation,
  { queues }: DoctorEnvironment,
  signal: AbortSignal,
): Promise<readonly DoctorLine[]> {
  const table = environment.table(signal);
  const [ofTable, ofQueues] = await Promise.all([
    checked('table', () => unlessAborted(signal, () => checkTable(table, environment.nowMs()))),
    queues === undefined
      ? []
      : checked('queue', () => unlessAborted(signal, () => checkQueues(queues.urls, queues.depth, signal))),
  ]);
  const { clock } = environment;
  return [...ofTable, ...(clock === undefined ? [] : checkClock(clock.skewMs())), ...ofQueues];
}

async function chosen(name: string | undefined, { environment }: Invocation, signal: AbortSignal) {
  const { clusters, unreadable, pausedAll } = await listClusters(environment.table(signal));
  const isChosen = (cluster: string) => name === undefined || cluster === name;
  const found = clusters.filter(({ spec }) => isChosen(spec.name));
  const broken = unreadable.filter((one) => isChosen(one.name));
  const count = found.length + broken.length;
  const lines: DoctorLine[] = [];
  if (count > 0 && name === undefined) {
    lines.push(ok('clusters', count === 1 ? '1 is registered' : `${count} are registered`));
  }
  if (pausedAll !== undefined && pausedAll.untilMs > environment.nowMs()) {
    const message = `all are paused until ${isoTime(pausedAll.untilMs)} by ${pausedAll.by}: ${pausedAll.reason}`;
    lines.push(warn('clusters', message, 'Wait, or end it: kbctl resume --all'));
  }
  for (const { name: cluster, error } of broken) lines.push({ cluster, ...failed('spec', error) });
  if (count === 0) {
    const message = name === undefined ? 'none is registered' : `cluster ${name} is not registered`;
    lines.push(fail('clusters', message, 'Register one: kbctl cluster apply -f cluster.yml'));
  }
  return { clusters: found, lines };
}

async function inTime(
  cluster: RegisteredCluster,
  { environment, remainingMs }: Invocation,
  context: CheckContext,
): Promise<readonly DoctorLine[]> {
  const lines = await withDeadline(environment, Math.min(CLUSTER_MS, remainingMs() - 2 * ANSWERING_MS), (deadline) => {
    const signal = AbortSignal.any([deadline, context.signal]);
    return checked('time', () => checkCluster(cluster, { ...context, signal }));
  });
  return lines.map((line) => ({ cluster: cluster.spec.name, ...line }));
}
