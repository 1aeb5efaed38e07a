import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { queueOf } from '../../deploy/cloudformation.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../../lib/spec/cluster-spec.ts';
import type { HostileApiServer } from '../hostile/hostile-api-server.ts';
import { bundleFunctions } from '../support/bundled-functions.ts';
import { readInRepository } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  afterTheseTests,
  attackNumber,
  type FleetClusters,
  FunctionQueue,
  longestSilenceMs,
  startClusters,
  startFleetTable,
  startHostile,
} from './fleet-functions.ts';

/** The minutes for each loop. `npm run containment` sets them; without them, the trial does not run. */
const MINUTES = Number(process.env['CONTAINMENT_MINUTES'] ?? 0);
const MINUTE_MS = 60_000;
/** The time after which the hostile API servers attack in another way. */
const ATTACK_MS = 2_000;
/** A healthy cluster has a pass at the latest this long after its interval. */
const LATEST_MS = 60_000;
/** Fifteen healthy clusters, which is as many as share a message with a hostile one. */
const HEALTHY = Array.from({ length: 15 }, (_, index) => `healthy-${index}`);

const functions: Readonly<Record<string, { memorySize: number; timeout: number }>> = parse(
  readInRepository('serverless.yml'),
).functions;
/** The share of a core that Lambda gives to a function, which has a whole core with 1,769 MB. */
const cpuShareOf = (loop: Loop) => (functions[loop]?.memorySize ?? 256) / 1_769;

const folder = temporaryFolder();
let hostile: HostileApiServer;
let clusters: FleetClusters;

beforeAll(async () => {
  if (MINUTES === 0) return;
  await bundleFunctions(folder, LOOPS);
  clusters = await startClusters(HEALTHY);
  hostile = await startHostile();
  let attack = 0;
  const timer = setInterval(() => {
    attack += 1;
    hostile.attack = attackNumber(attack);
  }, ATTACK_MS);
  afterTheseTests(() => clearInterval(timer));
});

async function startFunction(loop: Loop, queue: FunctionQueue) {
  const table = await startFleetTable();
  await table.registerAll(clusters);
  await table.registerHostile(hostile);
  const { memorySize = 0, timeout = 0 } = functions[loop] ?? {};
  return table.run(loop, {
    folder,
    memoryMb: memorySize,
    limitMs: timeout * 1_000,
    cpuShare: cpuShareOf(loop),
    environment: await queue.start(),
  });
}

function hiddenMsOf(loop: Loop): number {
  const { Resources } = parse(readInRepository('deploy/queues.yml'));
  return Resources[queueOf(loop)].Properties.VisibilityTimeout * 1_000;
}

(MINUTES === 0 ? describe.skip : describe)('hostile API servers that attack in turn for minutes', () => {
  test.each(LOOPS)(
    'passes of %s for a healthy cluster are at most one interval and 60 s apart',
    async (loop) => {
      const queue = new FunctionQueue(hiddenMsOf(loop));
      const running = await startFunction(loop, queue);
      const startMs = Date.now();
      const endMs = startMs + MINUTES * MINUTE_MS;
      const periodMs = Math.max(MINUTE_MS, SCHEDULE_SECONDS[loop] * 1_000);
      const count = Math.ceil((MINUTES * MINUTE_MS) / periodMs);
      const events = Array.from({ length: count }, (_, n) => startMs + n * periodMs);
      await queue.run(running, events, endMs);
      await running.stop();
      const silenceMs = longestSilenceMs(clusters, startMs, endMs);
      const lost = running.lines().filter((line) => line.includes('"process lost"')).length;
      console.log(
        `${loop}: ${MINUTES} minutes, the longest time without a pass was ${silenceMs} ms, ${lost} processes were lost`,
      );
      expect(silenceMs).toBeLessThan(SCHEDULE_SECONDS[loop] * 1_000 + LATEST_MS);
    },
    MINUTES * 2 * MINUTE_MS + MINUTE_MS,
  );
});
