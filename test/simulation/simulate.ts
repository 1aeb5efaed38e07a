import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { anEndpoints } from '../support/an-endpoints.ts';
import { putLease } from '../support/put-lease.ts';
import { Callers } from './callers.ts';
import { INCIDENTS } from './incidents.ts';
import { beat, tickEndpoints, tickRepair } from './loops.ts';
import { CLUSTER, SERVERS, SPEC, World } from './world.ts';

const MINUTE_MS = 60_000;
const TROUBLE_MS = 30 * MINUTE_MS;
/** Holds end, Services go, and leaks are seen by three passes. */
const QUIET_MS = 16 * MINUTE_MS;

export interface Simulated {
  readonly violations: readonly string[];
  /** What happened, to look into a violation. */
  readonly history: readonly string[];
}

/** Half an hour of incidents, and then as long without as it takes until everything is to be clean. */
export async function simulate(seed: number, spoil?: (table: KeyValueTable) => KeyValueTable): Promise<Simulated> {
  const world = new World(seed, spoil);
  await begin(world);
  const callers = new Callers(world);
  for (const run of [tickEndpoints, tickRepair, beat, keepCopies]) void run(world);
  void callers.arrive();
  void makeTrouble(world, callers);
  await world.driver.run(world.isWrong);
  if (world.ledger.violations.length === 0) checkClean(world);
  return world.ledger;
}

/** A new cluster; one that has endpoints; one whose leases have run out as well, and that was registered again. */
async function begin(world: World): Promise<void> {
  const { driver, nowMs } = world;
  const table = world.quietTable();
  await registerCluster(table, SPEC);
  const kind = driver.pick(3);
  if (kind > 0) world.adopt(anEndpoints(SERVERS));
  for (const address of kind > 1 ? SERVERS : []) {
    const lease = { generation: 1, source: 'probe', expiresAtMs: nowMs() - 1, misses: 0, seenDown: false } as const;
    await putLease(table, CLUSTER, { address, ...lease });
  }
  world.inChargeSinceMs = driver.nowMs;
}

async function makeTrouble(world: World, callers: Callers): Promise<void> {
  const { driver, ledger } = world;
  const untilMs = driver.nowMs + TROUBLE_MS;
  while (driver.nowMs < untilMs) {
    const incident = driver.oneOf(INCIDENTS);
    ledger.note(`incident: ${incident.name}`);
    await incident(world, callers);
    await driver.wait(MINUTE_MS);
  }
  world.isFaulty = false;
  ledger.note('no more incidents');
  await driver.wait(QUIET_MS);
  world.hasEnded = true;
}

async function keepCopies(world: World): Promise<void> {
  const { driver, copies, store } = world;
  while (!world.hasEnded) {
    await driver.wait(2 * MINUTE_MS);
    if (world.isRecord) copies.push({ atMs: driver.nowMs, store: structuredClone(store) });
  }
}

function checkClean(world: World): void {
  const { ledger, services } = world;
  const claimed = ['10.0.0.1', ...[...services.values()].map(({ clusterIP }) => clusterIP)].sort();
  const taken = [...world.taken()].sort();
  if (taken.join() !== claimed.join())
    ledger.violate(`taken at the end: ${taken.join(' ')}; claimed: ${claimed.join(' ')}`);
  const published = [...world.published()].sort();
  if (published.join() !== SERVERS.join()) ledger.violate(`published at the end: ${published.join(' ')}`);
}
