import { heartbeat } from '../../lib/api-servers/heartbeat.ts';
import { deregistration } from '../../lib/dispatch/deregistration.ts';
import { loopHandler } from '../../lib/dispatch/dispatch.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { AGENTS, CLUSTER, type World } from './world.ts';

const endpoints = loopHandler(kubernetesService);
const repair = loopHandler(clusterIpRepair);
export const deregister = deregistration();

const REPAIR_MS = 180_000;

/** Ticks every ten seconds, a little late, seldom much, and now and then twice. */
export async function tickEndpoints(world: World): Promise<void> {
  const { driver } = world;
  const tick = async (lateMs: number) => {
    await driver.wait(lateMs);
    // Passes that fail are recorded; the next tick tries again.
    if (!world.stopped) await world.invoke(endpoints, {}).catch(() => undefined);
  };
  while (!world.hasEnded) {
    await driver.wait(10_000);
    const lateMs = driver.once(15) ? driver.pick(9_000) : driver.pick(800);
    void tick(lateMs);
    if (driver.once(8)) void tick(lateMs + 300);
  }
}

export async function tickRepair(world: World): Promise<void> {
  const { driver } = world;
  while (!world.hasEnded) {
    void repairNow(world, driver.pick(2_000));
    if (driver.once(3)) void repairNow(world, driver.pick(8_000));
    await driver.wait(REPAIR_MS);
  }
}

/** One pass. The table is the record of every owner once such a pass has succeeded that began while it was in charge. */
async function repairNow(world: World, lateMs: number): Promise<void> {
  await world.driver.wait(lateMs);
  if (world.stopped) return;
  const { inChargeSinceMs } = world;
  const summary = await world.invoke(repair, { force: true }).catch(() => undefined);
  world.ledger.note(`repair: ${JSON.stringify(summary ?? 'failed')}`);
  const succeeded = summary?.passes === 1 && summary.failed === 0;
  if (succeeded && inChargeSinceMs !== undefined && inChargeSinceMs === world.inChargeSinceMs) world.isRecord = true;
}

/** The agents on the hosts of two API servers, half a second apart. */
export function beat(world: World): void {
  for (const [index, address] of AGENTS.entries()) void keepLease(world, address, index * 500);
}

async function keepLease(world: World, address: string, laterMs: number): Promise<void> {
  const { driver, nowMs } = world;
  await driver.wait(laterMs);
  while (!world.hasEnded) {
    await driver.wait(10_000);
    if (world.agentIsDead) continue;
    const probe = async () => world.answer(address);
    const request = { table: world.table(), cluster: CLUSTER, address, leaseMs: 15_000, nowMs, probe };
    await heartbeat(request).catch(() => undefined);
  }
}
