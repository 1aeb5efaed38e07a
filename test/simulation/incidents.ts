import { runOnce } from '../../cli/passes/run-once.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { closeAllocation, setClusterMode } from '../../lib/table/cluster-registration.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import type { Callers } from './callers.ts';
import { laptop } from './laptop.ts';
import { deregister } from './loops.ts';
import { CLUSTER, SERVERS, type World } from './world.ts';

/** More than three intervals of the repair loops. */
const OLD_COPY_MS = 600_000;
/** What is under way when it stops has ended. */
const DRAINED_MS = 45_000;

type Incident = (world: World, callers: Callers) => Promise<void>;

/** The functions do not run for minutes, and then do not reach an API server at first. */
async function outage(world: World): Promise<void> {
  const { driver } = world;
  world.stopped = true;
  await driver.wait(20_000 + driver.pick(200_000));
  world.stopped = false;
  await driver.wait(driver.pick(10_000));
  await blip(world);
}

/** No API server is reached from the functions, then one, then all. */
async function networkOutage(world: World): Promise<void> {
  const { driver, cutOff } = world;
  for (const address of SERVERS) cutOff.add(address);
  await driver.wait(15_000 + driver.pick(40_000));
  cutOff.delete(driver.oneOf(SERVERS));
  await driver.wait(driver.pick(4_000));
  cutOff.clear();
}

/** One API server is not reached for less than half an interval. */
async function blip({ driver, cutOff }: World): Promise<void> {
  const address = driver.oneOf(SERVERS);
  cutOff.add(address);
  await driver.wait(500 + driver.pick(3_000));
  cutOff.delete(address);
}

async function agentDies(world: World): Promise<void> {
  world.agentIsDead = true;
  await world.driver.wait(90_000);
  world.agentIsDead = false;
}

async function serverDies({ driver, downUntilMs, nowMs }: World): Promise<void> {
  const downMs = 5_000 + driver.pick(90_000);
  downUntilMs.set(driver.oneOf(SERVERS), nowMs() + downMs);
  await driver.wait(downMs + 60_000);
}

/** Withdrawn for three minutes, by a host that goes down or by a person. */
async function drain(world: World): Promise<void> {
  const { driver, ledger, leaving, withdrawnUntilMs } = world;
  const address = driver.oneOf(SERVERS);
  leaving.add(address);
  // The clock of a laptop is corrected to the second.
  const untilMs = world.nowMs() + 178_000;
  const event = { cluster: CLUSTER, address, untilMinutes: 3 };
  const { environment, close } = driver.once(2) ? await laptop(world) : { ...world, close: async () => {} };
  const answer = await world.invoke(deregister, event, environment).catch(() => undefined);
  await close();
  ledger.note(`deregister ${address}: ${answer?.outcome ?? 'failed'}`);
  if (answer?.outcome === 'deregistered' && !answer.stillPublished) withdrawnUntilMs.set(address, untilMs);
  await driver.wait(200_000);
  leaving.delete(address);
}

/** The passes only observe while another allocator is in charge, and enforce afterwards. */
async function observe(world: World, callers: Callers): Promise<void> {
  const { driver } = world;
  await switchMode(world, 'observe');
  world.isRecord = false;
  world.inChargeSinceMs = undefined;
  callers.owner = 'none';
  await driver.wait(DRAINED_MS);
  callers.owner = 'other';
  await driver.wait(60_000 + driver.pick(200_000));
  callers.owner = 'table';
  await switchMode(world, 'enforce');
  world.inChargeSinceMs = driver.nowMs;
}

async function switchMode(world: World, mode: 'observe' | 'enforce'): Promise<void> {
  await setClusterMode(world.quietTable(), CLUSTER, mode);
  world.ledger.note(`mode ${mode}`);
}

/**
 * A copy of the table takes its place. Allocation from it is closed as the restore procedure says, or by itself when the
 * copy is old.
 */
async function restore(world: World): Promise<void> {
  const { driver, store, ledger, copies } = world;
  const byHand = driver.once(2);
  const usable = copies.filter(({ atMs }) => byHand || atMs < driver.nowMs - OLD_COPY_MS);
  const copy = usable[driver.pick(usable.length)];
  if (copy === undefined) return;
  world.stopped = true;
  await driver.wait(DRAINED_MS);
  store.clear();
  for (const [cluster, items] of structuredClone(copy.store)) store.set(cluster, items);
  ledger.note(`the table of ${new Date(copy.atMs).toISOString()} is restored`);
  if (byHand) await closeRanges(world);
  ledger.endHolds();
  world.isRecord = false;
  world.inChargeSinceMs = driver.nowMs;
  world.stopped = false;
}

async function closeRanges(world: World): Promise<void> {
  await closeAllocation(world.quietTable(), CLUSTER);
}

/** `kbctl run-once` on a laptop whose clock is wrong. */
async function skewedRepair(world: World): Promise<void> {
  const { environment, close } = await laptop(world);
  const cluster = await readCluster(world.quietTable(), CLUSTER);
  const request = { loop: clusterIpRepair, dryRun: false };
  if (cluster !== undefined) await runOnce(environment, { ...request, cluster }).catch(() => undefined);
  await close();
}

export const INCIDENTS: readonly [Incident, ...Incident[]] = [
  outage,
  networkOutage,
  blip,
  agentDies,
  serverDies,
  drain,
  observe,
  restore,
  skewedRepair,
];
