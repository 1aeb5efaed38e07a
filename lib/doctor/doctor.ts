import * as z from 'zod/mini';
import { eachOf } from '../cluster/each-of.ts';
import { CONCURRENT_PASSES } from '../runtime/budgets.ts';
import { unlessAborted } from '../runtime/deadline.ts';
import { clusterName, DispatchError, eventFaults } from '../runtime/errors.ts';
import { type Handler, type Invocation, invoked } from '../runtime/invocation.ts';
import { listClusters, type RegisteredCluster } from '../table/clusters.ts';
import { checkCluster } from './check-cluster.ts';
import { checkClock, checkQueues, checkTable } from './check-stack.ts';
import { type DoctorEnvironment, type DoctorLine, fail, failed, looked, ok, warn } from './line.ts';

export interface DoctorAnswer {
  /** What concerns them all first, then cluster by cluster. */
  readonly lines: readonly DoctorLine[];
  /** No line is a `fail`. */
  readonly ok: boolean;
}

const CLOSING_MS = 1_000;
/** The longest that one cluster is looked at. */
const CLUSTER_MS = 20_000;

const request = z.strictObject({ cluster: z.optional(clusterName) });

/** The handler of whoever wants to know why it does not work: looks at everything, and changes nothing in a cluster. */
export function doctor(environmentOf: () => DoctorEnvironment): Handler<DoctorAnswer> {
  return (event, context) =>
    invoked('doctor', context, async (invocation) => {
      const parsed = request.safeParse(event ?? {});
      if (!parsed.success) {
        const expected = 'The event is not {"cluster": name}, which may be left out to look at all of them';
        throw new DispatchError('BadEvent', `${expected}: ${eventFaults(parsed.error)}`);
      }
      const lines = await linesOf(parsed.data.cluster, invocation, environmentOf());
      const levels = Map.groupBy(lines, ({ level }) => level);
      const counts = {
        lines: lines.length,
        warnings: levels.get('warn')?.length ?? 0,
        failures: levels.get('fail')?.length ?? 0,
      };
      invocation.telemetry.log(counts.failures > 0 ? 'warn' : 'info', 'doctor: looked', counts);
      return { lines, ok: counts.failures === 0 };
    });
}

async function linesOf(
  name: string | undefined,
  invocation: Invocation,
  doctor: DoctorEnvironment,
): Promise<DoctorLine[]> {
  const { environment, remainingMs } = invocation;
  const whole = environment.startDeadline(Math.max(0, remainingMs() - CLOSING_MS));
  const { signal } = whole;
  try {
    const table = environment.table(signal);
    const { queues } = doctor;
    const [ofTable, ofQueues] = await Promise.all([
      looked('table', () => unlessAborted(signal, () => checkTable(table, environment.nowMs()))),
      queues === undefined
        ? []
        : looked('queue', () => unlessAborted(signal, () => checkQueues(queues.urls, queues.depth, signal))),
    ]);
    const skewMs = environment.skewMs?.();
    const ofClock = skewMs === undefined ? [] : checkClock(skewMs);
    const common = [...ofTable, ...ofClock, ...ofQueues];
    if (ofTable.some(({ level }) => level === 'fail')) return common;
    const { clusters, lines } = await unlessAborted(signal, () => chosen(name, invocation, signal));
    const checked = await eachOf(clusters, CONCURRENT_PASSES, (cluster) => inTime(cluster, invocation, doctor, signal));
    return [...common, ...lines, ...checked.flat()];
  } catch (error) {
    return [failed('clusters', error)];
  } finally {
    whole.cancel();
  }
}

async function chosen(
  name: string | undefined,
  { environment }: Invocation,
  signal: AbortSignal,
): Promise<{ readonly clusters: readonly RegisteredCluster[]; readonly lines: readonly DoctorLine[] }> {
  const { clusters, unreadable, pausedAll } = await listClusters(environment.table(signal));
  const lines: DoctorLine[] = [];
  const wanted = <Named>(named: readonly Named[], nameOf: (one: Named) => string) =>
    named.filter((one) => name === undefined || nameOf(one) === name);
  const found = wanted(clusters, ({ spec }) => spec.name);
  const broken = wanted(unreadable, (one) => one.name);
  if (pausedAll !== undefined && pausedAll.untilMs > environment.nowMs()) {
    const until = new Date(pausedAll.untilMs).toISOString();
    lines.push(
      warn(
        'clusters',
        `all are paused until ${until} by ${pausedAll.by}: ${pausedAll.reason}`,
        'Wait, or end it: kbctl resume --all',
      ),
    );
  }
  for (const { name: cluster, error } of broken) lines.push({ cluster, ...failed('spec', error) });
  if (found.length + broken.length > 0) {
    const count = found.length + broken.length;
    if (name === undefined) lines.unshift(ok('clusters', count === 1 ? '1 is registered' : `${count} are registered`));
    return { clusters: found, lines };
  }
  const fix = 'Put cluster.yml beside serverless.yml and deploy; its first pass registers it';
  const message = name === undefined ? 'none is registered' : `none of the name ${name} is registered`;
  return { clusters: [], lines: [...lines, fail('clusters', message, fix)] };
}

/** The lines of one cluster, which carry its name. One that hangs holds up no other. */
async function inTime(
  cluster: RegisteredCluster,
  { environment, remainingMs }: Invocation,
  doctor: DoctorEnvironment,
  whole: AbortSignal,
): Promise<readonly DoctorLine[]> {
  const deadline = environment.startDeadline(Math.max(0, Math.min(CLUSTER_MS, remainingMs() - 2 * CLOSING_MS)));
  const signal = AbortSignal.any([deadline.signal, whole]);
  try {
    const lines = await looked('time', () => checkCluster(cluster, { environment, doctor, signal }));
    return lines.map((line) => ({ cluster: cluster.spec.name, ...line }));
  } finally {
    deadline.cancel();
  }
}
