import { beforeAll, expect, test } from '@jest/globals';
import { addressesIn, type EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { ENDPOINTS } from '../../local/stand-in/resources.ts';
import { ATTACKS, type Attack } from '../hostile/attacks.ts';
import type { HostileApiServer } from '../hostile/hostile-api-server.ts';
import { bundleFunctions } from '../support/bundled-functions.ts';
import type { MisbehavingCluster } from '../support/misbehaving-cluster.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { RunningFunction } from './emulator-function.ts';
import { ADDRESS, type FleetClusters, startClusters, startFleetTable, startHostile } from './fleet-functions.ts';

/** The interval of the kubernetes-service loop, which is the shortest. */
const INTERVAL_MS = 10_000;
const HEALTHY = Array.from({ length: 15 }, (_, index) => `healthy-${index}`);
/** The values of `memorySize` in serverless.yml. */
const MEMORY_MB = { 'kubernetes-service': 256, 'cluster-ip-repair': 512 } as const;
type TestedLoop = keyof typeof MEMORY_MB;

const folder = temporaryFolder();
let table: Awaited<ReturnType<typeof startFleetTable>>;
let hostile: HostileApiServer;
let clusters: FleetClusters;
const functions = new Map<TestedLoop, RunningFunction>();

beforeAll(async () => {
  table = await startFleetTable();
  clusters = await startClusters(HEALTHY);
  await table.registerAll(clusters);
  hostile = await startHostile();
  await table.registerHostile(hostile);
  // The functions are bundled as serverless.yml does, and each runs in one process.
  const loops = Object.keys(MEMORY_MB) as TestedLoop[];
  await bundleFunctions(folder, loops);
  for (const loop of loops) {
    functions.set(loop, table.run(loop, { folder, memoryMb: MEMORY_MB[loop], limitMs: 150_000 }));
  }
});

function published({ standIn }: Pick<MisbehavingCluster, 'standIn'>): string {
  return addressesIn(standIn.store.get(ENDPOINTS, 'default', 'kubernetes') as unknown as EndpointsObject).join();
}

/** Runs one tick with all clusters. Expects that only the pass of the hostile cluster fails, and that no other is delayed. */
async function tick(loop: TestedLoop): Promise<void> {
  const startedAtMs = Date.now();
  const { answer, error, peakMemoryMb } = (await functions.get(loop)?.invoke({
    clusters: [`hostile-${hostile.attack.tls ? 'https' : 'http'}`, ...HEALTHY],
    force: true,
  })) ?? { answer: 'no function' };
  expect({ answer, error }).toEqual({ answer: { passes: 16, failed: 1, skipped: 0 }, error: undefined });
  expect(peakMemoryMb).toBeLessThan(MEMORY_MB[loop]);
  const harmed: string[] = [];
  for (const [name, cluster] of clusters) {
    const afterMs = (cluster.calledMs.at(-1) ?? 0) - startedAtMs;
    if (afterMs < 0 || afterMs >= INTERVAL_MS) harmed.push(`the pass of ${name} ended after ${afterMs} ms`);
    const addresses = loop === 'kubernetes-service' ? published(cluster) : ADDRESS;
    if (addresses !== ADDRESS) harmed.push(`${name} has the addresses "${addresses}"`);
  }
  expect(harmed).toEqual([]);
}

test.each(ATTACKS)(
  'an API server with $name causes no lost address and no failed or late pass of another cluster',
  async (attack: Attack) => {
    hostile.attack = attack;
    await tick('kubernetes-service');
    // The repair is not tested with attacks that reply slowly: its list is allowed to take a minute, which delays only the
    // hostile cluster itself.
    if (attack.everyMs === undefined) await tick('cluster-ip-repair');
  },
);
