import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { getPriority, setPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from '@jest/globals';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { LOCAL_TABLE, localTable } from '../../local/local-environment.ts';
import { startTableServer } from '../../local/table-server.ts';
import { ATTACKS, type Attack } from '../hostile/attacks.ts';
import { type HostileApiServer, startHostileApiServer } from '../hostile/hostile-api-server.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { heapOptions } from '../support/bundled-functions.ts';
import { found } from '../support/found.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { queueEvent } from '../support/memory-queue.ts';
import { startMisbehavingCluster } from '../support/misbehaving-cluster.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Runnable, type RunningFunction, runFunction } from './emulator-function.ts';

/** The address of the API server of each cluster, in the network namespace of the tests. */
export const ADDRESS = '10.9.8.7';
const STACK = 'stack';

interface FunctionOptions extends Pick<Runnable, 'folder' | 'limitMs' | 'cpuShare'> {
  readonly memoryMb: number;
  /** Options of Node.js in addition to the size of the heap. */
  readonly nodeOptions?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const stops: (() => unknown)[] = [];

/** Calls a function after the tests of the file. Several functions are called in reverse order. */
export function afterTheseTests(stop: () => unknown): void {
  stops.push(stop);
}

beforeAll(() => {
  const before = getPriority();
  // These tests measure times, while other files run beside them. A user without this right runs them alone.
  try {
    setPriority(-10);
    afterTheseTests(() => setPriority(before));
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_SYSTEM_ERROR' });
  }
});

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

export type FleetClusters = Awaited<ReturnType<typeof startClusters>>;

/** Starts an API server for each cluster. Its `calledMs` has the times of the calls of passes to it. Probes do not count. */
export async function startClusters(names: readonly string[]) {
  const starts = names.map(async (name) => {
    const cluster = await startMisbehavingCluster(ADDRESS);
    afterTheseTests(() => cluster.stop());
    const calledMs: number[] = [];
    cluster.misbehave(() => {
      calledMs.push(Date.now());
      return undefined;
    });
    return [name, { ...cluster, calledMs }] as const;
  });
  return new Map(await Promise.all(starts));
}

export function attackNumber(number: number): Attack {
  return found(ATTACKS[number % ATTACKS.length]);
}

/** Starts an API server that attacks in the first way until a test sets another attack. */
export async function startHostile(): Promise<HostileApiServer> {
  const hostile = await startHostileApiServer(attackNumber(0), ADDRESS);
  afterTheseTests(() => hostile.stop());
  return hostile;
}

/** Starts the table of a fleet on loopback. */
export async function startFleetTable() {
  const server = await startTableServer({ key: 'local' });
  afterTheseTests(() => server.close());
  const table = localTable(server.client);
  /** Registers a cluster of the stack, so that each loop has passes for it. @param url The URL of its API server. */
  const register = async (name: string, file: string, url: string) => {
    const apiServers = [aServer(ADDRESS, { url: `${url}/readyz` })];
    await registerCluster(table, aClusterSpec({ name, allocator: 'table', kubeconfig: { file }, apiServers }));
    await claimCluster(table, name, STACK);
  };
  return {
    registerAll: async (clusters: FleetClusters) => {
      for (const [name, { kubeconfigFile, url }] of clusters) await register(name, kubeconfigFile, url);
    },
    /** Registers the hostile API server as the clusters `hostile-http` and `hostile-https`, with these schemes in its URL. */
    registerHostile: async (hostile: HostileApiServer) => {
      for (const scheme of ['http', 'https']) {
        const file = join(temporaryFolder(), 'kubeconfig.json');
        const url = hostile.url.replace(/^https?/, scheme);
        await writeFile(file, kubeconfigTo(url));
        await register(`hostile-${scheme}`, file, url);
      }
    },
    /** Runs the function of a loop from its bundle in `folder`, with the heap size for its memory. */
    run: (loop: Loop, { memoryMb, nodeOptions = '', environment, folder, ...options }: FunctionOptions) => {
      const running = runFunction({
        ...{ folder, opt: '', handler: `functions/${loop}.handler` },
        environment: {
          TABLE_NAME: LOCAL_TABLE,
          STACK,
          REPORTING_INSTANCE: STACK,
          AWS_REGION: 'local',
          AWS_ACCESS_KEY_ID: 'local',
          AWS_SECRET_ACCESS_KEY: 'local',
          AWS_ENDPOINT_URL: server.endpoint,
          NODE_OPTIONS: `${heapOptions(memoryMb)} ${nodeOptions}`,
          ...environment,
        },
        ...options,
      });
      afterTheseTests(() => running.stop());
      return running;
    },
  };
}

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

  /** Starts to accept messages. Returns the variables of the functions that send them. */
  async start() {
    const headers = { 'content-type': 'application/x-amz-json-1.0' };
    const { url, stop } = await startFaultServer(({ body }) => ({ headers, body: this.#accept(body) }));
    afterTheseTests(stop);
    return { TICK_QUEUE_URL: `${url}/0/ticks`, AWS_ENDPOINT_URL_SQS: url };
  }

  #accept(request: string): object {
    const { Entries } = JSON.parse(request) as {
      readonly Entries: readonly { Id: string; MessageBody: string; DelaySeconds?: number }[];
    };
    const Successful = Entries.map(({ Id, MessageBody, DelaySeconds = 0 }) => {
      this.#messages.push({ body: MessageBody, visibleAtMs: Date.now() + DelaySeconds * 1000, receives: 0 });
      return { Id, MessageId: Id, MD5OfMessageBody: createHash('md5').update(MessageBody).digest('hex') };
    });
    return { Successful, Failed: [] };
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
          if (error !== undefined) this.#messages.push({ ...message, receives, visibleAtMs });
        });
      }
      await sleep(20);
    }
  }
}

/** Returns the longest time from `fromMs` to `toMs` without a call to one of the API servers. */
export function longestSilenceMs(clusters: FleetClusters, fromMs: number, toMs: number): number {
  const gapsMs = [...clusters.values()].flatMap(({ calledMs }) => {
    const times = [fromMs, ...calledMs.filter((ms) => ms >= fromMs && ms <= toMs), toMs];
    return times.slice(1).map((ms, index) => ms - (times[index] ?? 0));
  });
  return Math.max(...gapsMs);
}
