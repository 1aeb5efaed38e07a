import type { QueueDepth } from '../aws/send-batches.ts';
import { concurrencyFor } from '../dispatch/ticks.ts';
import { type KeyValueTable, MOST_SKEW_MS } from '../table/key-value-table.ts';
import { describeError } from '../telemetry/telemetry.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

/** The partition of the test item. No cluster has this name, because a cluster name cannot begin with "#". */
const PARTITION = '#doctor';
const KEY = 'probe';
const KEPT_MS = 60 * 60_000;

/** Reads, writes and lists an item, because the functions need all of these calls. The item expires after an hour. */
export async function checkTable(table: KeyValueTable, nowMs: number): Promise<readonly DoctorLine[]> {
  const before = await table.get(PARTITION, KEY);
  const content = { cluster: PARTITION, key: KEY, value: { atMs: nowMs }, schema: 1, expiresAtMs: nowMs + KEPT_MS };
  const written = await table.put(content, before);
  // Another doctor wrote first, so the table works.
  if (written.outcome !== 'won') return [ok('table', 'reads and writes; another doctor runs at the same time')];
  const listed = await table.list(PARTITION, KEY);
  // Another doctor may have written since, with a higher version.
  if (listed.some(({ version }) => version >= written.item.version)) return [ok('table', 'reads, lists and writes')];
  const fix = 'TABLE_NAME must be a table of DynamoDB itself, not a global replica or a cache of one';
  return [fail('table', 'an item that was written is not listed', fix)];
}

export function checkClock(skewMs: number): readonly DoctorLine[] {
  const apart = `${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the table's`;
  if (Math.abs(skewMs) <= MOST_SKEW_MS) return [ok('clock', "agrees with the table's")];
  const fix =
    'Set the clock of this host with chronyd or timedatectl: it decides when leases, holds and withdrawals end';
  return [fail('clock', `is ${apart} or more`, fix)];
}

/** The largest number of waiting messages that is normal. A longer queue is not processed within its minute. */
const MANY = 10_000;

/** Checks the queues of ticks. Sends no message, because a message would be a tick. */
export async function checkQueues(
  urls: readonly string[],
  depth: QueueDepth,
  signal: AbortSignal,
): Promise<readonly DoctorLine[]> {
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
      'Deploy the stack that has the queue, allow sqs:GetQueueAttributes on it to this function, and in a VPC give it ' +
      'an interface endpoint for SQS';
    return fail('queue', `${name} does not answer (${code}: ${message})`, fix);
  }
}
