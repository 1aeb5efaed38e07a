import type { Chance } from './clock.ts';
import { drain, drainAll, pause, undoIsLost, withdraw } from './operators.ts';
import { changeRange, flood, loseRegistration, observe, repairsStop, restore } from './range-incidents.ts';
import {
  agentDies,
  blip,
  endpointsDeleted,
  foreignSlice,
  lateAddition,
  moveControlPlane,
  namesFail,
  networkOutage,
  overwrite,
  probeOutage,
  recordChanges,
  replaceServer,
  rotate,
  serverDies,
  serverRestarts,
} from './server-incidents.ts';
import type { World } from './world.ts';

type Incident = (world: World, chance: Chance) => Promise<void>;

/** Stops the functions for some time. An API server may be down when they run again. */
async function outage(world: World, chance: Chance): Promise<void> {
  if (world.isStopped) return;
  world.stops++;
  await world.clock.wait(15_000 + chance.pick(30_000));
  const died = chance.once(3) ? undefined : serverDies(world, chance, chance.pick(60_000));
  world.stops--;
  await died;
}

async function deployment(world: World): Promise<void> {
  world.note('every process ends');
  world.endProcesses();
}

/** Stops every process and the network for a moment. */
async function stall({ clock }: World, chance: Chance): Promise<void> {
  clock.stall(500 + chance.pick(chance.oneOf([2_500, 20_000])));
}

/** Loses many calls and their retries for some seconds. In half of the cases, servers are drained all the time. */
async function lossyNetwork(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  world.lossyUntilMs = clock.nowMs + 3_000 + chance.pick(20_000);
  if (!world.has('endpoints') || chance.once(2)) return;
  while (clock.nowMs < world.lossyUntilMs) {
    void withdraw(world, chance.oneOf(world.firstAddresses), 0.2, chance);
    await clock.wait(chance.pick(600));
  }
}

export const INCIDENTS: Readonly<Record<string, Incident>> = {
  agentDies,
  blip,
  changeRange,
  deployment,
  drain,
  drainAll,
  endpointsDeleted,
  flood,
  foreignSlice,
  lateAddition,
  loseRegistration,
  lossyNetwork,
  moveControlPlane,
  namesFail,
  networkOutage,
  observe,
  outage,
  overwrite,
  pause,
  probeOutage,
  recordChanges,
  repairsStop,
  replaceServer,
  restore,
  rotate,
  serverDies,
  serverRestarts,
  stall,
  undoIsLost,
};
