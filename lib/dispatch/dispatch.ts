import type { LoopDefinition } from '../loops/pass.ts';
import type { ClusterList } from '../table/clusters.ts';
import { listClusters } from '../table/clusters.ts';
import { CLOSING_MS, CONCURRENT_PASSES, LISTING_MS } from './budgets.ts';
import { concurrently } from './concurrently.ts';
import { unlessAborted } from './deadline.ts';
import { DispatchError } from './errors.ts';
import type { Tick } from './event.ts';
import { parseEvent } from './event.ts';
import type { Invocation } from './invocation.ts';
import type { NamedVisit, Summary } from './summary.ts';
import { summaryOf, withoutPass } from './summary.ts';
import { tellUnbegun } from './tell-pass.ts';
import { visitCluster } from './visit-cluster.ts';

/** A cluster that no pass can begin for. */
interface Unusable {
  readonly name: string;
  readonly error: Error;
}

/**
 * From an event to the passes of one loop: every cluster that is due has its own deadline, and none holds up another
 * or fails the invocation.
 *
 * @throws DispatchError `BadEvent`, and a `TableError` when the clusters cannot be listed.
 */
export async function dispatch(loop: LoopDefinition, event: unknown, invocation: Invocation): Promise<Summary> {
  const { environment, telemetry } = invocation;
  const beganAtMs = environment.nowMs();
  const tick = parseEvent(event, beganAtMs);
  const list = await listInTime(invocation);
  const { clusters, unusable } = selected(list, tick);

  const visits: NamedVisit[] = [];
  for (const { name, error } of unusable) {
    tellUnbegun(telemetry, loop.id, name, error);
    visits.push({ name, visit: { outcome: 'failed' } });
  }
  const round = { loop, tick, pausedAll: list.pausedAll, ...invocation };
  await concurrently(clusters, CONCURRENT_PASSES, async (cluster) => {
    visits.push({ name: cluster.spec.name, visit: await visitCluster(round, cluster) });
  });

  const summary = summaryOf(visits);
  const { paused, unreached } = withoutPass(visits);
  const durationMs = environment.nowMs() - beganAtMs;
  const lateMs = beganAtMs - tick.dueAtMs;
  const level = unreached === undefined ? 'info' : 'error';
  telemetry.log(level, 'invocation ended', { ...summary, durationMs, lateMs, paused, unreached });
  return summary;
}

async function listInTime({ environment, remainingMs }: Invocation): Promise<ClusterList> {
  const deadline = environment.startDeadline(Math.min(LISTING_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  try {
    return await unlessAborted(deadline.signal, () => listClusters(environment.table(deadline.signal)));
  } finally {
    deadline.cancel();
  }
}

/** The clusters that a tick is for, and those of them that no pass can begin for. */
function selected({ clusters, unreadable }: ClusterList, { clusters: names }: Tick) {
  if (names === undefined) return { clusters, unusable: unreadable };
  const found = clusters.filter(({ spec }) => names.includes(spec.name));
  const broken: Unusable[] = unreadable.filter(({ name }) => names.includes(name));
  const known = new Set([...found.map(({ spec }) => spec.name), ...broken.map(({ name }) => name)]);
  const unknown = names
    .filter((name) => !known.has(name))
    .map((name) => ({ name, error: notRegistered(name, clusters) }));
  return { clusters: found, unusable: [...broken, ...unknown] };
}

function notRegistered(name: string, clusters: ClusterList['clusters']): DispatchError {
  const registered = clusters.slice(0, 10).map(({ spec }) => spec.name);
  const others = clusters.length > registered.length ? ` and ${clusters.length - registered.length} more` : '';
  const known = registered.length === 0 ? 'no cluster is' : `registered are ${registered.join(', ')}${others}`;
  return new DispatchError('NotRegistered', `No cluster of the name ${name} is registered in the table: ${known}.`);
}
