import type { Chance } from './clock.ts';
import { drain, pause, withdraw } from './operators.ts';
import { changeRange, flood, loseRegistration, observe, repairsStop, restore } from './range-incidents.ts';
import {
  agentDies,
  blip,
  endpointsDeleted,
  lateAddition,
  moveControlPlane,
  networkOutage,
  recordChanges,
  replaceServer,
  rotate,
  serverDies,
  serverRestarts,
} from './server-incidents.ts';
import { PARTS, type Part } from './settings.ts';
import type { World } from './world.ts';

type Incident = (world: World, chance: Chance) => Promise<void>;

/** The functions do not run for some time. */
async function outage(world: World, chance: Chance): Promise<void> {
  world.stops++;
  await world.clock.wait(15_000 + chance.pick(60_000));
  world.stops--;
}

async function deployment(world: World): Promise<void> {
  world.note('every process ends');
  world.endProcesses();
}

/** Every process, and the network, stands still for a moment. */
async function stall({ clock }: World, chance: Chance): Promise<void> {
  clock.stall(500 + chance.pick(chance.oneOf([2_500, 20_000])));
}

/** Many calls and their retries are lost for some seconds. In half of the cases servers are drained all the time. */
async function lossyNetwork(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  world.lossyUntilMs = clock.nowMs + 3_000 + chance.pick(20_000);
  if (!world.has('endpoints') || chance.once(2)) return;
  while (clock.nowMs < world.lossyUntilMs) {
    void withdraw(world, chance.oneOf(world.firstAddresses), 0.2, chance);
    await clock.wait(chance.pick(600));
  }
}

const BY_PART: readonly (readonly [readonly Part[], Readonly<Record<string, Incident>>])[] = [
  [
    PARTS,
    {
      outage,
      networkOutage,
      lossyNetwork,
      restore,
      pause,
      deployment,
      rotate,
      moveControlPlane,
      loseRegistration,
      stall,
    },
  ],
  [
    ['endpoints'],
    {
      blip,
      endpointsDeleted,
      lateAddition,
      serverDies,
      serverRestarts,
      agentDies,
      drain,
      replaceServer,
      recordChanges,
    },
  ],
  [['ranges'], { observe, changeRange, repairsStop, flood }],
];

export const INCIDENTS: Readonly<Record<string, Incident>> = Object.assign(
  {},
  ...BY_PART.map(([, incidents]) => incidents),
);

export const INCIDENT_PARTS: Readonly<Record<string, readonly Part[]>> = Object.fromEntries(
  BY_PART.flatMap(([parts, incidents]) => Object.keys(incidents).map((name) => [name, parts])),
);
