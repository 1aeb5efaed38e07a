import * as z from 'zod/mini';
import type { QueueDepth } from '../aws/send-batches.ts';
import { concurrencyFor } from '../dispatch/ticks.ts';
import { ANSWERING_MS, CONCURRENT_PASSES, DispatchError, withDeadline, withinDeadline } from '../runtime/deadline.ts';
import type { DoctorEnvironment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { clusterName, shapeFaults } from '../spec/shapes.ts';
import { listClusters, type RegisteredCluster } from '../table/clusters.ts';
import { type KeyValueTable, MOST_SKEW_MS } from '../table/key-value-table.ts';
import { describeError } from '../telemetry/telemetry.ts';
import { eachOf } from '../util/async.ts';
import { isoTime } from '../util/values.ts';
import { checkCluster } from './check-cluster.ts';
import { type CheckResult, checked, type DoctorLine, fail, failed, ok, warn } from './line.ts';

export interface DoctorAnswer {
  readonly lines: readonly DoctorLine[];
  readonly ok: boolean;
}

const CLUSTER_MS = 20_000;

const request = z.strictObject({ cluster: z.optional(clusterName) });

/** Checks everything that the loops need. Changes nothing in a cluster. */
export const doctor: Handler<DoctorAnswer, DoctorEnvironment> = (event, context) =>
  runInvocation('doctor', context, async (invocation) => {
    const parsed = request.safeParse(event ?? {});
    if (!parsed.success) {
      const expected = 'The event must be {"cluster": name}, or {} for all clusters';
      throw new DispatchError('BadEvent', `${expected}: ${shapeFaults(parsed.error, 'the event')}`);
    }
    const lines = await linesOf(parsed.data.cluster, invocation);
    const countOf = (level: DoctorLine['level']) => lines.filter((line) => line.level === level).length;
    const counts = { lines: lines.length, warnings: countOf('warn'), failures: countOf('fail') };
    invocation.telemetry.log(counts.failures > 0 ? 'warn' : 'info', 'doctor: checks completed', counts);
    return { lines, ok: counts.failures === 0 };
  });

type DoctorInvocation = Invocation<DoctorEnvironment>;

async function linesOf(name: string | undefined, invocation: DoctorInvocation): Promise<DoctorLine[]> {
  const { environment, remainingMs } = invocation;
  try {
    return await withinDeadline(environment, remainingMs() - ANSWERING_MS, async (signal) => {
      const common = await checkStack(invocation, signal);
      if (common.some(({ check, level }) => check === 'table' && level === 'fail')) return [...common];
      const { clusters, lines } = await chosen(name, invocation, signal);
      const sized = checkConcurrency(clusters.length, environment.clustersPerTick, environment.queues?.concurrency);
      const ofClusters = await eachOf(clusters, CONCURRENT_PASSES, (cluster) =>
        checkInTime(cluster, invocation, signal),
      );
      return [...common, ...sized, ...lines, ...ofClusters.flat()];
    });
  } catch (error) {
    return [failed('clusters', error)];
  }
}

async function checkStack({ environment }: DoctorInvocation, signal: AbortSignal): CheckResult {
  const { clock, queues } = environment;
  const table = environment.table(signal);
  const [ofTable, ofQueues] = await Promise.all([
    checked('table', signal, () => checkTable(table, environment.nowMs())),
    queues && checked('queue', signal, () => checkQueues(queues.urls, queues.depth, signal)),
  ]);
  return [...ofTable, ...(clock === undefined ? [] : checkClock(clock.skewMs())), ...(ofQueues ?? [])];
}

/** The partition of the test item. No cluster has this name, because a cluster name cannot begin with "#". */
const PARTITION = '#doctor';
const KEY = 'probe';
const KEPT_MS = 60 * 60_000;

/** Reads, writes and lists an item, as the functions do. The item expires after an hour. */
export async function checkTable(table: KeyValueTable, nowMs: number): CheckResult {
  const before = await table.get(PARTITION, KEY);
  const content = { cluster: PARTITION, key: KEY, value: { atMs: nowMs }, schema: 1, expiresAtMs: nowMs + KEPT_MS };
  const written = await table.put(content, before);
  if (written.outcome === 'lost') return [ok('table', 'reads and writes; another doctor runs at the same time')];
  if (written.outcome === 'unclear') {
    return [
      warn('table', 'the reply to a write was lost, and it is unknown whether it happened', 'Run the doctor again'),
    ];
  }
  const listed = await table.list(PARTITION, KEY);
  // Another doctor may have written since, with a higher version.
  if (listed.some(({ version }) => version >= written.item.version)) return [ok('table', 'reads, lists and writes')];
  const fix = 'TABLE_NAME must be a table of DynamoDB itself, not a global replica or a cache of one';
  return [fail('table', 'an item that was written is not listed', fix)];
}

export function checkClock(skewMs: number): readonly DoctorLine[] {
  const apart = `${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the table's`;
  if (Math.abs(skewMs) <= MOST_SKEW_MS) return [ok('clock', "agrees with the table's")];
  const fix = 'Set the clock of this host (chronyd, timedatectl): it decides when leases, holds and withdrawals end';
  return [fail('clock', `is ${apart} or more`, fix)];
}

/** The maximum number of waiting messages in a healthy queue. A longer queue is not processed within the minute. */
const MANY = 10_000;

/** Checks the queues of ticks. Sends no message, because a message would be a tick. */
export async function checkQueues(urls: readonly string[], depth: QueueDepth, signal: AbortSignal): CheckResult {
  if (urls.length === 0) return [ok('queue', 'none: every loop runs as often as its schedule')];
  return Promise.all(urls.map((url) => checkQueue(url, depth, signal)));
}

/** @param concurrency the number of messages of a queue that are processed at the same time; absent if unknown */
export function checkConcurrency(
  clusters: number,
  clustersPerTick: number,
  concurrency: number | undefined,
): readonly DoctorLine[] {
  const needed = concurrencyFor(clusters, clustersPerTick);
  if (concurrency === undefined || concurrency >= needed) return [];
  const message = `${concurrency} ticks at the same time are too few for ${clusters} clusters: ticks come late and are dropped`;
  return [warn('queue', message, `Set the parameter tickConcurrency of the stack to ${needed}`)];
}

async function checkQueue(url: string, depth: QueueDepth, signal: AbortSignal): Promise<DoctorLine> {
  const name = url.split('/').at(-1) ?? url;
  try {
    const waiting = await depth(url, signal);
    if (waiting <= MANY) return ok('queue', `${name}: ${waiting} ticks wait`);
    return warn('queue', `${name}: ${waiting} ticks wait`, 'Raise the parameter tickConcurrency of the stack');
  } catch (error) {
    const { code, message } = describeError(error);
    const fix =
      'Deploy the stack that has it, allow sqs:GetQueueAttributes on it to this function, and in a VPC add an SQS endpoint';
    return fail('queue', `${name} does not answer (${code}: ${message})`, fix);
  }
}

async function chosen(name: string | undefined, { environment }: DoctorInvocation, signal: AbortSignal) {
  const { clusters, unreadable, pausedAll } = await listClusters(environment.table(signal));
  const isChosen = (cluster: string) => name === undefined || cluster === name;
  const found = clusters.filter(({ spec }) => isChosen(spec.name));
  const broken = unreadable.filter((one) => isChosen(one.name));
  const count = found.length + broken.length;
  const lines: DoctorLine[] = [];
  if (count > 0 && name === undefined) lines.push(ok('clusters', `registered: ${count}`));
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

async function checkInTime(
  cluster: RegisteredCluster,
  { environment, remainingMs }: DoctorInvocation,
  signal: AbortSignal,
): CheckResult {
  const longestMs = Math.min(CLUSTER_MS, remainingMs() - 2 * ANSWERING_MS);
  const lines = await withDeadline(environment, longestMs, (deadline) =>
    checkCluster(cluster, environment, AbortSignal.any([deadline, signal])),
  );
  return lines.map((line) => ({ cluster: cluster.spec.name, ...line }));
}
