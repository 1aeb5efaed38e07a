import type { Chance } from './clock.ts';
import { withdraw } from './operators.ts';
import * as rangeIncidents from './range-incidents.ts';
import * as serverIncidents from './server-incidents.ts';
import { changeCidrs, damageRecord, holdAddress } from './stock-cluster.ts';
import type { World } from './world.ts';

async function deployment(world: World): Promise<void> {
  world.note('every process ends');
  world.functions.endProcesses();
}

/** Stops every process and the network for a moment. */
async function stall({ clock }: World, chance: Chance): Promise<void> {
  clock.stall(500 + chance.pick(chance.oneOf([2_500, 20_000])));
}

/** Loses many calls and their retries for some seconds. In half of the cases, servers are drained all the time. */
async function lossyNetwork(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  world.functions.lossyUntilMs = clock.nowMs + 3_000 + chance.pick(20_000);
  if (!world.has('endpoints') || chance.once(2)) return;
  while (clock.nowMs < world.functions.lossyUntilMs) {
    void withdraw(world, chance.oneOf(world.cluster.firstAddresses), 0.2, chance);
    await clock.wait(chance.pick(600));
  }
}

/** The incidents by name. Each export of the two imported files is one. */
export const INCIDENTS = {
  ...rangeIncidents,
  ...serverIncidents,
  changeCidrs,
  damageRecord,
  holdAddress,
  deployment,
  lossyNetwork,
  stall,
};

export type IncidentName = keyof typeof INCIDENTS;
