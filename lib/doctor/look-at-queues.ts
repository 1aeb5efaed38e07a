import type { QueueDepth } from '../queue/queue-depth.ts';
import { describeError } from '../telemetry/describe-error.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

/** More ticks than this do not wait where they are worked off in their minute. */
const MANY = 10_000;

/** The queues of the ticks. Nothing is put into them: that would be a tick. */
export async function lookAtQueues(
  urls: readonly string[],
  depth: QueueDepth,
  signal: AbortSignal,
): Promise<readonly DoctorLine[]> {
  if (urls.length === 0) return [ok('queue', 'there are none: every loop runs as often as its schedule')];
  return Promise.all(urls.map((url) => lookAtQueue(url, depth, signal)));
}

async function lookAtQueue(url: string, depth: QueueDepth, signal: AbortSignal): Promise<DoctorLine> {
  const name = url.split('/').at(-1) ?? url;
  try {
    const waiting = await depth(url, signal);
    if (waiting <= MANY) return ok('queue', `${name}: ${waiting} ticks wait`);
    return warn('queue', `${name}: ${waiting} ticks wait`, 'Raise the parameter tickConcurrency of the stack');
  } catch (error) {
    const { code, message } = describeError(error);
    const fix =
      'Deploy the stack that makes the queue, allow sqs:GetQueueAttributes on it to this function, and in a VPC give it ' +
      'an interface endpoint for SQS';
    return fail('queue', `${name} does not answer (${code}: ${message})`, fix);
  }
}
