import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { queueOf } from '../../deploy/cloudformation.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import { ATTACKS } from '../hostile/attacks.ts';
import { type HostileApiServer, startHostileApiServer } from '../hostile/hostile-api-server.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { bundleFunctions } from '../support/bundled-functions.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { queueEvent } from '../support/memory-queue.ts';
import { readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { RunningFunction } from './emulator-function.ts';
import { ADDRESS, afterTheseTests, startClusters, startFleetTable } from './fleet-functions.ts';

/** The default of the parameter `tickConcurrency`. */
const SLOTS = 10;

interface Message {
  readonly body: string;
  readonly visibleAtMs: number;
  readonly receives: number;
}

/** The queue of a loop. It accepts messages over HTTP like SQS, and returns them one at a time. */
class FunctionQueue {
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
function longestGapMs(timesMs: readonly number[], fromMs: number, toMs: number): number {
  const times = [fromMs, ...timesMs.filter((ms) => ms >= fromMs && ms <= toMs), toMs];
  return Math.max(...times.slice(1).map((ms, index) => ms - (times[index] ?? 0)));
}

/** The minutes for each loop. `npm run containment` sets them; without them, the trial does not run. */
const MINUTES = Number(process.env['CONTAINMENT_MINUTES'] ?? 0);
const MINUTE_MS = 60_000;
/** The time after which the hostile API servers attack in another way. */
const ATTACK_MS = 2_000;
/** A healthy cluster has a pass at the latest this long after its interval. */
const LATEST_MS = 60_000;
/** Fifteen healthy clusters, which is as many as share a message with a hostile one. */
const HEALTHY = Array.from({ length: 15 }, (_, index) => `healthy-${index}`);
const HOSTILE = ['http', 'https'] as const;

const functions: Readonly<Record<string, { memorySize: number; timeout: number }>> = parse(
  readInRepository('serverless.yml'),
).functions;
/** The share of a core that Lambda gives to a function, which has a whole core with 1,769 MB. */
const cpuShareOf = (loop: Loop) => (functions[loop]?.memorySize ?? 256) / 1_769;

const folder = temporaryFolder();
let hostile: HostileApiServer;
let clusters: Awaited<ReturnType<typeof startClusters>>;
const calledMs = new Map<string, number[]>();

beforeAll(async () => {
  if (MINUTES === 0) return;
  await bundleFunctions(folder, LOOPS);
  clusters = await startClusters(HEALTHY, (name) => calledMs.get(name)?.push(Date.now()));
  hostile = await startHostileApiServer(attackNumber(0), ADDRESS);
  afterTheseTests(() => hostile.stop());
  let attack = 0;
  const timer = setInterval(() => {
    attack += 1;
    hostile.attack = attackNumber(attack);
  }, ATTACK_MS);
  afterTheseTests(() => clearInterval(timer));
});

function attackNumber(number: number) {
  const attack = ATTACKS[number % ATTACKS.length];
  if (attack === undefined) throw new Error('there are no attacks');
  return attack;
}

async function startFunction(loop: Loop, queue: FunctionQueue) {
  const table = await startFleetTable();
  const register = (name: string, file: string, url: string) => table.register(name, file, url, { allocator: 'table' });
  for (const [name, { kubeconfigFile, url }] of clusters) await register(name, kubeconfigFile, url);
  for (const scheme of HOSTILE) {
    const file = join(folder, `${scheme}.json`);
    const url = hostile.url.replace(/^https?/, scheme);
    await writeFile(file, kubeconfigTo(url));
    await register(`hostile-${scheme}`, file, url);
  }
  const sqs = await queue.start();
  const { memorySize = 0, timeout = 0 } = functions[loop] ?? {};
  return table.run(loop, {
    folder,
    memoryMb: memorySize,
    limitMs: timeout * 1_000,
    cpuShare: cpuShareOf(loop),
    environment: { TICK_QUEUE_URL: `${sqs}/0/ticks`, AWS_ENDPOINT_URL_SQS: sqs },
  });
}

function hiddenMsOf(loop: Loop): number {
  const { Resources } = parse(readInRepository('deploy/queues.yml'));
  return Resources[queueOf(loop)].Properties.VisibilityTimeout * 1_000;
}

(MINUTES === 0 ? describe.skip : describe)(
  'hostile API servers that attack in turn, for minutes, in functions with the CPU share of Lambda',
  () => {
    test.each(LOOPS)(
      'no pass of %s for a healthy cluster is later than its interval and 60 s',
      async (loop) => {
        for (const name of HEALTHY) calledMs.set(name, []);
        const queue = new FunctionQueue(hiddenMsOf(loop));
        const running = await startFunction(loop, queue);
        const startMs = Date.now();
        const endMs = startMs + MINUTES * MINUTE_MS;
        const periodMs = Math.max(MINUTE_MS, SCHEDULE_SECONDS[loop] * 1_000);
        const events = Array.from(
          { length: Math.ceil((MINUTES * MINUTE_MS) / periodMs) },
          (_, n) => startMs + n * periodMs,
        );
        await queue.run(running, events, endMs);
        await running.stop();
        const gaps = HEALTHY.map((name) => longestGapMs(calledMs.get(name) ?? [], startMs, endMs));
        const lost = running.lines().filter((line) => line.includes('"process lost"')).length;
        console.log(
          `${loop}: ${MINUTES} minutes, the longest time without a pass was ${Math.max(...gaps)} ms, ${lost} processes were lost`,
        );
        expect(Math.max(...gaps)).toBeLessThan(SCHEDULE_SECONDS[loop] * 1_000 + LATEST_MS);
      },
      MINUTES * 2 * MINUTE_MS + MINUTE_MS,
    );
  },
);
