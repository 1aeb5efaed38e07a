import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { bundleFunctions } from '../support/bundled-functions.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { RunningFunction } from './emulator-function.ts';
import {
  type FleetClusters,
  FunctionQueue,
  longestSilenceMs,
  startClusters,
  startFleetTable,
} from './fleet-functions.ts';

const LOOP = 'kubernetes-service';
const MEMORY_MB = 256;
const INTERVAL_MS = 10_000;
/** The time limit of a function. With the deployed values, 55 s and 65 s, the test would take too long. */
const FUNCTION_TIMEOUT_MS = 15_000;
const HIDDEN_MS = 18_000;
/** The time between two scheduled events. It is 60 s in production. */
const MINUTE_MS = 25_000;
const CLUSTERS = Array.from({ length: 16 }, (_, index) => `c-${String(index).padStart(2, '0')}`);
const [HOSTILE = ''] = CLUSTERS;

const folder = temporaryFolder();
let clusters: FleetClusters;

beforeAll(async () => {
  await bundleFunctions(folder, [LOOP]);
  clusters = await startClusters(CLUSTERS);
});

/** Starts a function whose process runs this code at its first connection to the hostile cluster. */
async function startFunction(attack: string, cpuShare: number, queue: FunctionQueue): Promise<RunningFunction> {
  const table = await startFleetTable();
  await table.registerAll(clusters);
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
  return table.run(LOOP, {
    folder,
    memoryMb: MEMORY_MB,
    nodeOptions: `--import ${hook}`,
    limitMs: FUNCTION_TIMEOUT_MS,
    cpuShare,
    environment: await queue.start(),
  });
}

test.each([
  ['an endless loop', 0.145, 'for (;;);'],
  ['a heap bomb', 0.29, 'const kept = []; for (;;) kept.push(new Array(10_000).fill(kept.length));'],
])('if a pass runs %s with %d of a core, other clusters miss two minutes at most', async (_, cpuShare, attack) => {
  const queue = new FunctionQueue(HIDDEN_MS);
  const running = await startFunction(attack, cpuShare, queue);
  const startMs = Date.now();
  await queue.run(running, [startMs, startMs + MINUTE_MS], startMs + 60_000);
  const endMs = Date.now();
  const healthy = new Map([...clusters].filter(([name]) => name !== HOSTILE));
  expect(longestSilenceMs(healthy, startMs, endMs)).toBeLessThan(2 * MINUTE_MS);
  expect(longestSilenceMs(healthy, startMs + 1.5 * MINUTE_MS, endMs)).toBeLessThan(2 * INTERVAL_MS);
  await running.stop();
});
