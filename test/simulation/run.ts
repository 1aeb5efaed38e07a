import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { copyOf, INCIDENTS } from './incidents.ts';
import { startPasses } from './passes.ts';
import { Pipelines } from './pipelines.ts';
import { SPARES } from './servers.ts';
import { INTERVAL_MS, type LeftOut, type Settings, settingsOf } from './settings.ts';
import { forgetNetworks } from './stand-in-undici.ts';
import { RANGE_KEYS } from './stored-items.ts';
import { type Violation, World } from './world.ts';

export interface Ran {
  readonly settings: Settings;
  readonly violations: readonly Violation[];
  readonly history: readonly string[];
  readonly virtualMs: number;
  readonly steps: number;
}

const INTERVALS_TO_CONVERGE = 4;
/** The last Services are created, and deleted, within this. */
const LAST_LIVES_MS = 35_000;
const COPY_EVERY_MS = 20_000;

export interface RunOptions {
  readonly without?: LeftOut;
  /** Keeps the history, which costs time. */
  readonly isRecorded?: boolean;
}

/** Runs one seed: trouble for some minutes, and then as long without as it takes until everything is to be clean. */
export async function run(seed: number, { without, isRecorded = false }: RunOptions = {}): Promise<Ran> {
  forgetNetworks();
  const settings = settingsOf(seed, Object.keys(INCIDENTS), without);
  const world = new World(settings, isRecorded);
  const { clock } = world;
  const beganAtMs = clock.nowMs;
  await begin(world);
  void world.people.work();
  if (world.has('requests')) void new Pipelines(world, world.people).work();
  startPasses(world);
  void keepCopies(world);
  void makeTrouble(world);
  await clock.run(() => world.violations.length > 0 || world.hasEnded);
  if (world.violations.length === 0) checkConverged(world);
  const { violations, history } = world;
  return { settings, violations, history, virtualMs: clock.nowMs - beganAtMs, steps: clock.steps };
}

async function begin(world: World): Promise<void> {
  const { servers, chance, clock } = world;
  const metadata = { namespace: 'default', name: 'kubernetes' };
  const spec = { type: 'ClusterIP', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ports: [] };
  servers.plane.place('services', { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
  world.people.placeFirst();
  for (const address of SPARES) servers.cut(address, true);
  await registerCluster(world.tableOf(world.desk), world.spec);
  world.inChargeSinceMs = clock.nowMs;
  world.note(`seed ${world.settings.seed}: ${[...world.settings.features].join(' ')}`);
  world.note(`faults: ${[...world.settings.faults].map(([fault, rate]) => `${fault} 1/${rate}`).join(' ')}`);
  if (chance.of('start').once(2)) return;
  const subsets = [
    {
      addresses: world
        .expected()
        .filter((ip) => servers.isGood(ip))
        .map((ip) => ({ ip })),
      ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
    },
  ];
  servers.plane.place('endpoints', { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets } as never);
}

async function makeTrouble(world: World): Promise<void> {
  const { settings, clock } = world;
  const isOver = [];
  for (const { name, number, afterMs } of settings.incidents) {
    const begin = async () => {
      await clock.wait(afterMs);
      world.note(`#${number} ${name}`);
      await INCIDENTS[name]?.(world, world.chance.of(`#${number}`));
    };
    isOver.push(begin());
  }
  await clock.wait(settings.troubleMs);
  await Promise.all(isOver);
  world.isFaulty = false;
  world.note('no more trouble');
  if (world.has('serverDiesLast')) killOne(world);
  await clock.wait(LAST_LIVES_MS + intervalsToConverge(world) * INTERVAL_MS);
  world.hasEnded = true;
}

/** For good: it is to leave the endpoints. */
function killOne(world: World): void {
  const { servers, spec } = world;
  const chance = world.chance.of('the last death');
  const named = spec.apiServers.flatMap((server) =>
    'address' in server && servers.isGood(server.address) ? server.address : [],
  );
  const address = named[chance.pick(named.length)];
  if (address === undefined) return;
  world.note(`${address} is dead from now on`);
  servers.set(address, { state: chance.oneOf(['down', 'silent']) });
}

/** After a rotation, strikes count from zero: the kubeconfig leads to another control plane, as far as passes know. */
function intervalsToConverge({ servers }: World): number {
  return servers.hasRotated ? 2 * INTERVALS_TO_CONVERGE : INTERVALS_TO_CONVERGE;
}

async function keepCopies(world: World): Promise<void> {
  const { clock, copies, table, ranges } = world;
  while (!world.hasEnded) {
    await clock.wait(COPY_EVERY_MS);
    if (ranges.isRecord('ranges/serviceips')) copies.push({ atMs: clock.nowMs, store: copyOf(table.store) });
  }
}

function checkConverged(world: World): void {
  const { servers } = world;
  // The repairs wait for the server of their kubeconfig.
  if (servers.reached(new URL(servers.kubeconfig.server).hostname) !== undefined) checkRanges(world);
  // Passes use a kept kubeconfig for hours, as long as the control plane that it leads to answers.
  if (world.has('endpoints') && !servers.hasMoved) checkEndpoints(world);
}

function checkRanges(world: World): void {
  const { ranges, servers, clock } = world;
  const freedLateMs = servers.hasRotated ? INTERVALS_TO_CONVERGE * INTERVAL_MS : 2 * INTERVAL_MS;
  const owned = new Set(['10.0.0.1', ...ranges.owned()]);
  const keys = RANGE_KEYS.filter((key) => key !== 'ranges/servicenodeports' || world.has('nodePorts'));
  for (const key of keys) {
    const { taken, holds } = world.stored(key);
    for (const item of taken) {
      const heldUntilMs = holds.get(item)?.untilMs ?? 0;
      // What no caller knows that it holds is freed by the pass after the end of its hold.
      const isHeld = heldUntilMs > clock.nowMs - freedLateMs;
      if (!owned.has(item) && !isHeld) world.violate('leaked', `${item} is taken at the end, and nothing has it`);
    }
  }
  for (const item of owned) {
    const isTaken = keys.some((key) => world.stored(key).taken.has(item));
    if (!isTaken && world.isInSpec(item)) world.violate('freed', `${item} is free at the end, and has an owner`);
  }
}

function checkEndpoints(world: World): void {
  const { endpoints, servers } = world;
  const isCertain = (address: string) => !endpoints.mayBeWithdrawn(address);
  const good = world.expected().filter((address) => servers.isGood(address) && !endpoints.isWithdrawn(address));
  const expected = good.filter(isCertain).sort();
  const published = endpoints.published().filter(isCertain);
  // The last address stays.
  if (expected.length > 0 && published.join() !== expected.join()) {
    world.violate('notConverged', `published at the end: ${published.join(' ')}; expected: ${expected.join(' ')}`);
  }
}
