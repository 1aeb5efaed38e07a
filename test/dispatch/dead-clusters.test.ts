import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { MessageQueue } from '../../lib/aws/sqs-queue.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import { aDispatchWorld, aReport, type DispatchWorld } from '../support/dispatch-world.ts';
import { queueEvent } from '../support/memory-queue.ts';

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The default of `tickConcurrency`. */
const SLOTS = 10;
const INTERVAL_MS = 10_000;
const PASS_MS = 300;
const MINUTE_MS = 60_000;
const START_MS = Date.parse('2026-01-01T12:00:00Z');

const NAMES = Array.from({ length: 400 }, (_, index) => `c-${String(index).padStart(3, '0')}`);
/** One of ten: messages in the order of names have one or two of them. */
const DEAD = NAMES.filter((name) => name.endsWith('7'));

interface Message {
  readonly body: string;
  readonly visibleAtMs: number;
}

/** The queue of a loop and its event source: so many messages at a time, the first that is due first. */
class Lambda {
  readonly #handle: (event: unknown) => Promise<unknown>;
  readonly #waiting: Message[] = [];
  #busy = 0;
  /** How late each healthy cluster's tick was when a function received it, with when it was due. */
  readonly lateness: { readonly dueAtMs: number; readonly lateMs: number }[] = [];

  constructor(handle: (event: unknown) => Promise<unknown>) {
    this.#handle = handle;
  }

  readonly queue: MessageQueue = {
    send: async (messages) => {
      for (const { body, delaySeconds } of messages) {
        this.#waiting.push({ body, visibleAtMs: Date.now() + delaySeconds * 1000 });
      }
      return [];
    },
  };

  poll(): void {
    this.#waiting.sort((one, other) => one.visibleAtMs - other.visibleAtMs);
    while (this.#busy < SLOTS && (this.#waiting[0]?.visibleAtMs ?? Number.POSITIVE_INFINITY) <= Date.now()) {
      const message = this.#waiting.shift();
      if (message !== undefined) void this.#run(message.body);
    }
  }

  async #run(body: string): Promise<void> {
    this.#busy += 1;
    const { dueAtMs, clusters } = JSON.parse(body) as { dueAtMs: number; clusters: string[] };
    const lateMs = Date.now() - dueAtMs;
    for (const name of clusters) if (!name.endsWith('7')) this.lateness.push({ dueAtMs, lateMs });
    await this.#handle(queueEvent(body));
    this.#busy -= 1;
    this.poll();
  }
}

let world: DispatchWorld;
let dead: Set<string>;
let ran: { readonly name: string; readonly atMs: number }[];
let lambda: Lambda;
let onSchedule: () => Promise<unknown>;

beforeEach(async () => {
  jest.useFakeTimers({ now: START_MS });
  dead = new Set(DEAD);
  ran = [];
  world = aDispatchWorld({ nowMs: Date.now, startDeadline, stack: 'prod' });
  const loop: LoopDefinition = {
    id: 'kubernetes-service',
    run: async ({ spec: { name } }) => {
      ran.push({ name, atMs: Date.now() });
      await sleep(dead.has(name) ? MINUTE_MS : PASS_MS);
      return aReport();
    },
  };
  const handler = loopHandler(loop);
  const context = () => ({
    environment: { ...world.environment, tickQueue: lambda.queue },
    getRemainingTimeInMillis: () => 50_000,
  });
  lambda = new Lambda((event) => handler(event, context()));
  onSchedule = () => handler({ 'detail-type': 'Scheduled Event', time: new Date().toISOString() }, context());
  await world.register(...NAMES.map((name) => ({ name })));
});

afterEach(() => {
  jest.useRealTimers();
});

async function minutes(count: number): Promise<void> {
  for (let minute = 0; minute < count; minute += 1) {
    void onSchedule();
    for (let step = 0; step < MINUTE_MS / 250; step += 1) {
      await jest.advanceTimersByTimeAsync(250);
      lambda.poll();
    }
  }
}

function p99(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length * 0.99)] ?? Number.NaN;
}

describe('400 clusters, 40 of which give no answer', () => {
  test('the ticks of the healthy ones are less than an interval late', async () => {
    await minutes(2);
    world.telemetry.lines.length = 0;
    await minutes(1);
    const steady = lambda.lateness.filter(({ dueAtMs }) => dueAtMs >= START_MS + 2 * MINUTE_MS);
    expect(steady).toHaveLength((NAMES.length - DEAD.length) * 6);
    expect(p99(steady.map(({ lateMs }) => lateMs))).toBeLessThan(INTERVAL_MS);
    expect(world.telemetry.lines.filter(({ message }) => message === 'tick dropped')).toEqual([]);
  });

  test('one that answers again has every tick at once', async () => {
    await minutes(3);
    dead.clear();
    await minutes(1);
    const since = (name: string) =>
      ran.flatMap((pass) => (pass.name === name && pass.atMs > START_MS + 3 * MINUTE_MS ? [pass.atMs] : []));
    for (const name of DEAD) {
      const [first = 0, ...next] = since(name);
      expect(first).toBeLessThan(START_MS + 3 * MINUTE_MS + INTERVAL_MS);
      expect(next).toHaveLength(5);
    }
  });
});
