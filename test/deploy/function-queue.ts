import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFaultServer } from '../support/api-fault-server.ts';
import { queueEvent } from '../support/memory-queue.ts';
import type { RunningFunction } from './emulator-function.ts';
import { afterTheseTests } from './fleet-functions.ts';

/** The default of the parameter `tickConcurrency`. */
const SLOTS = 10;

interface Message {
  readonly body: string;
  readonly visibleAtMs: number;
  readonly receives: number;
}

/** The queue of a loop. It accepts messages over HTTP like SQS, and returns them one at a time. */
export class FunctionQueue {
  readonly #hiddenMs: number;
  #messages: Message[] = [];

  /** @param hiddenMs the time after which a message is delivered again if its invocation failed */
  constructor(hiddenMs: number) {
    this.#hiddenMs = hiddenMs;
  }

  async start(): Promise<string> {
    const headers = { 'content-type': 'application/x-amz-json-1.0' };
    const { url, stop } = await startFaultServer(({ body }) => ({ headers, body: this.#accept(body) }));
    afterTheseTests(stop);
    return url;
  }

  #accept(request: string): object {
    const { Entries } = JSON.parse(request) as {
      readonly Entries: readonly { Id: string; MessageBody: string; DelaySeconds?: number }[];
    };
    const Successful = Entries.map(({ Id, MessageBody, DelaySeconds = 0 }) => {
      this.#put({ body: MessageBody, visibleAtMs: Date.now() + DelaySeconds * 1000, receives: 0 });
      return { Id, MessageId: Id, MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex') };
    });
    return { Successful, Failed: [] };
  }

  #put(message: Message): void {
    this.#messages.push(message);
  }

  #take(): Message | undefined {
    const next = this.#messages
      .filter(({ visibleAtMs }) => visibleAtMs <= Date.now())
      .toSorted((one, other) => one.visibleAtMs - other.visibleAtMs)[0];
    this.#messages = this.#messages.filter((message) => message !== next);
    return next;
  }

  /** Invokes the function with scheduled events and the messages of this queue until `endMs`. */
  async run(running: RunningFunction, schedulesMs: readonly number[], endMs: number): Promise<void> {
    const left = [...schedulesMs];
    let busy = 0;
    while (Date.now() < endMs) {
      const [nextMs = Number.POSITIVE_INFINITY] = left;
      if (nextMs <= Date.now()) {
        left.shift();
        void running.invoke({ 'detail-type': 'Scheduled Event', time: new Date(nextMs).toISOString() });
      }
      const message = busy < SLOTS ? this.#take() : undefined;
      if (message !== undefined) {
        busy += 1;
        const receives = message.receives + 1;
        const visibleAtMs = Date.now() + this.#hiddenMs;
        void running.invoke(queueEvent(message.body, receives)).then(({ error }) => {
          busy -= 1;
          if (error !== undefined) this.#put({ ...message, receives, visibleAtMs });
        });
      }
      await sleep(20);
    }
  }
}

/** Returns the longest time from `fromMs` to `toMs` between two of these times. */
export function longestGapMs(timesMs: readonly number[], fromMs: number, toMs: number): number {
  const times = [fromMs, ...timesMs.filter((ms) => ms >= fromMs && ms <= toMs), toMs];
  return Math.max(...times.slice(1).map((ms, index) => ms - (times[index] ?? 0)));
}
