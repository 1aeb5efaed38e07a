import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { startFaultServer } from '../support/api-fault-server.ts';
import { bundleFunctions } from '../support/bundled-functions.ts';
import { queueEvent } from '../support/memory-queue.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { RunningFunction } from './emulator-function.ts';
import { afterTheseTests, startClusters, startFleetTable } from './fleet-functions.ts';

const LOOP = 'kubernetes-service';
const MEMORY_MB = 256;
const INTERVAL_MS = 10_000;
/** The time limit of a function. With the deployed values, 55 s and 65 s, the test would take too long. */
const FUNCTION_TIMEOUT_MS = 15_000;
const HIDDEN_MS = 18_000;
const SLOTS = 10;
/** The time between two scheduled events. It is 60 s in production. */
const MINUTE_MS = 25_000;
const CLUSTERS = Array.from({ length: 16 }, (_, index) => `c-${String(index).padStart(2, '0')}`);
const [HOSTILE = '', ...HEALTHY] = CLUSTERS;

/**
 * Code that does not stop at the deadline of its pass. The process runs the code at its first connection to the hostile cluster.
 */
const ATTACKS = {
  'an endless loop': 'for (;;);',
  'a heap bomb': 'const kept = []; for (;;) kept.push(new Array(10_000).fill(kept.length));',
} as const;

const folder = temporaryFolder();
let clusters: Awaited<ReturnType<typeof startClusters>>;
/** The times of all calls to each API server. */
const calledMs = new Map<string, number[]>();

beforeAll(async () => {
  await bundleFunctions(folder, [LOOP]);
  clusters = await startClusters(CLUSTERS, (name) => calledMs.get(name)?.push(Date.now()));
});

interface Message {
  readonly body: string;
  readonly visibleAtMs: number;
  readonly receives: number;
}

/** The queue of the loop. It accepts messages over HTTP like SQS, and returns them one at a time. */
class Queue {
  #messages: Message[] = [];

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
      this.put({ body: MessageBody, visibleAtMs: Date.now() + DelaySeconds * 1000, receives: 0 });
      return { Id, MessageId: Id, MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex') };
    });
    return { Successful, Failed: [] };
  }

  put(message: Message): void {
    this.#messages.push(message);
  }

  take(): Message | undefined {
    const next = this.#messages
      .filter(({ visibleAtMs }) => visibleAtMs <= Date.now())
      .toSorted((one, other) => one.visibleAtMs - other.visibleAtMs)[0];
    this.#messages = this.#messages.filter((message) => message !== next);
    return next;
  }
}

async function startFunction(attack: string, cpuShare: number, queue: Queue): Promise<RunningFunction> {
  const table = await startFleetTable();
  for (const [name, { kubeconfigFile, url }] of clusters) await table.register(name, kubeconfigFile, url);
  const hook = join(folder, `${createHash('md5').update(attack).digest('hex')}.mjs`);
  const { port } = new URL(clusters.get(HOSTILE)?.url ?? '');
  await writeFile(
    hook,
    `import { Socket } from 'node:net';
    const { connect } = Socket.prototype;
    Socket.prototype.connect = function (...args) {
      const [options] = Array.isArray(args[0]) ? args[0] : args;
      if (Number(options?.port) === ${port}) setTimeout(() => { ${attack} }, 20);
      return connect.apply(this, args);
    };`,
  );
  const sqs = await queue.start();
  return table.run(LOOP, {
    folder,
    memoryMb: MEMORY_MB,
    nodeOptions: `--import ${hook}`,
    limitMs: FUNCTION_TIMEOUT_MS,
    cpuShare,
    environment: { TICK_QUEUE_URL: `${sqs}/0/ticks`, AWS_ENDPOINT_URL_SQS: sqs },
  });
}

/** Invokes the function with scheduled events and the messages of its queue until `endMs`. */
async function run(queue: Queue, running: RunningFunction, schedulesMs: readonly number[], endMs: number) {
  const left = [...schedulesMs];
  let busy = 0;
  while (Date.now() < endMs) {
    const [nextMs = Number.POSITIVE_INFINITY] = left;
    if (nextMs <= Date.now()) {
      left.shift();
      void running.invoke({ 'detail-type': 'Scheduled Event', time: new Date(nextMs).toISOString() });
    }
    const message = busy < SLOTS ? queue.take() : undefined;
    if (message !== undefined) {
      busy += 1;
      const receives = message.receives + 1;
      const visibleAtMs = Date.now() + HIDDEN_MS;
      void running.invoke(queueEvent(message.body, receives)).then(({ error }) => {
        busy -= 1;
        if (error !== undefined) queue.put({ ...message, receives, visibleAtMs });
      });
    }
    await sleep(20);
  }
}

/** Returns the longest time without a call to the API server of a healthy cluster, from `fromMs` to `toMs`. */
function longestSilenceMs(fromMs: number, toMs: number): number {
  const gaps = HEALTHY.flatMap((name) => {
    const times = [fromMs, ...(calledMs.get(name) ?? []).filter((ms) => ms >= fromMs && ms <= toMs), toMs];
    return times.slice(1).map((ms, index) => ms - (times[index] ?? 0));
  });
  return Math.max(...gaps);
}

describe('a pass that does not stop at its deadline, in a fleet with fifteen healthy clusters and with the CPU share of Lambda', () => {
  test.each([
    { attack: 'an endless loop', cpuShare: 0.145 },
    { attack: 'a heap bomb', cpuShare: 0.29 },
  ] as const)(
    'if a pass runs $attack with $cpuShare of a core, the other clusters miss at most the ticks of two minutes',
    async ({ attack, cpuShare }) => {
      for (const name of CLUSTERS) calledMs.set(name, []);
      const queue = new Queue();
      const running = await startFunction(ATTACKS[attack], cpuShare, queue);
      const startMs = Date.now();
      await run(queue, running, [startMs, startMs + MINUTE_MS], startMs + 60_000);
      const endMs = Date.now();
      expect(longestSilenceMs(startMs, endMs)).toBeLessThan(2 * MINUTE_MS);
      expect(longestSilenceMs(startMs + 1.5 * MINUTE_MS, endMs)).toBeLessThan(2 * INTERVAL_MS);
      await running.stop();
    },
  );
});
