import type { EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { anEndpoints } from '../support/an-endpoints.ts';
import { ATTACKER, STACK } from './cluster.ts';
import { isIPv6 } from './control-plane.ts';
import { untilConverged } from './convergence.ts';
import { INCIDENTS } from './incidents.ts';
import { apply, LONG_MIN, restart, withdraw } from './operators.ts';
import { startPasses } from './passes.ts';
import { Pipelines } from './pipelines.ts';
import { BALANCED, BALANCED_SERVICE, SPARES } from './servers.ts';
import { type LeftOut, type Settings, settingsOf } from './settings.ts';
import { type Violation, World } from './world.ts';

export interface Ran {
  readonly settings: Settings;
  readonly violations: readonly Violation[];
  readonly history: readonly string[];
  readonly virtualMs: number;
}

/** The time in which the last Services are created and deleted. */
const LAST_LIVES_MS = 15_000;
const COPY_EVERY_MS = 8_000;
const AFTERMATH_MS = 10_000;
/** The time in which a tick begins and ends without faults. */
const NEXT_TICK_MS = 14_000;
/** If the process of a scheduled event ended, its minute has no ticks. */
const NEXT_SCHEDULE_MS = 61_000;

export interface RunOptions {
  readonly without?: LeftOut;
  /** Keeps the history, which takes time. */
  readonly isRecorded?: boolean;
  readonly longestMs?: number;
}

/** Runs one seed: some minutes with faults and incidents, then without them until the state must be correct. */
export async function run(
  seed: number,
  { without, isRecorded = false, longestMs = Number.POSITIVE_INFINITY }: RunOptions = {},
): Promise<Ran> {
  const settings = settingsOf(seed, without);
  // Stack traces of expected errors would take a fifth of the time.
  Error.stackTraceLimit = isRecorded ? 10 : 0;
  const world = new World(settings, isRecorded);
  const { clock } = world;
  const beganAtMs = clock.nowMs;
  await begin(world);
  if (world.has('ranges')) void world.people.work();
  void world.stock?.work();
  void world.stock?.repair();
  const pipelines = new Pipelines(world);
  if (world.has('ranges') && world.has('requests')) void pipelines.work();
  startPasses(world);
  void keepCopies(world);
  void sweep(world);
  void makeTrouble(world);
  await clock
    .run(() => world.violations.length > 0 || world.hasEnded || clock.nowMs > beganAtMs + longestMs)
    .catch((error: unknown) => world.violate('stuck', String(error)));
  const { violations, history } = world;
  return { settings, violations, history, virtualMs: clock.nowMs - beganAtMs };
}

async function begin(world: World): Promise<void> {
  const { servers, chance, clock } = world;
  const metadata = { namespace: 'default', name: 'kubernetes' };
  const spec = { type: 'ClusterIP', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], ports: [] };
  servers.plane.place('services', { apiVersion: 'v1', kind: 'Service', metadata, spec } as never);
  if (world.has('balancer')) placeBalancer(world);
  if (world.has('ranges')) world.people.placeFirst();
  world.stock?.begin();
  for (const address of SPARES) servers.cut(address, true);
  await apply(world, {});
  if (world.has('attacker')) await placeAttacker(world);
  world.cluster.inChargeSinceMs = clock.nowMs;
  world.note(`seed ${world.settings.seed}: ${[...world.settings.features].join(' ')}`);
  world.note(`faults: ${[...world.settings.faults].map(([fault, rate]) => `${fault} 1/${rate}`).join(' ')}`);
  if (chance.of('start').once(2)) return;
  const ips = world.cluster.expected().filter((ip) => servers.isGood(ip) && !isIPv6(ip));
  servers.plane.place('endpoints', { ...anEndpoints(ips), metadata });
}

/** Registers another cluster of the stack, whose passes harm their process. */
async function placeAttacker({ functions }: World): Promise<void> {
  const { table } = await functions.kbctl();
  await registerCluster(table, aClusterSpec({ name: ATTACKER, kubeconfig: { ssm: ATTACKER } }));
  await claimCluster(table, ATTACKER, STACK);
}

/** Creates the Service of the management cluster, which is the same cluster here. */
function placeBalancer({ servers }: World): void {
  const ingress = BALANCED.map(({ name: hostname }) => ({ hostname }));
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: BALANCED_SERVICE,
    spec: { type: 'LoadBalancer', ports: [] },
  };
  servers.plane.place('services', Object.assign(service, { status: { loadBalancer: { ingress } } }) as never);
}

async function makeTrouble(world: World): Promise<void> {
  const { settings, clock } = world;
  const isOver = [];
  for (const { name, number, afterMs } of settings.incidents) {
    const begin = async () => {
      await clock.wait(afterMs);
      world.note(`#${number} ${name}`);
      await INCIDENTS[name](world, world.chance.of(`#${number}`));
    };
    isOver.push(begin());
  }
  await clock.wait(settings.troubleMs);
  const planned = clock.nowMs;
  await Promise.all(isOver);
  // Waits, so that some requests run in the state that the last incident left.
  if (clock.nowMs > planned) await clock.wait(AFTERMATH_MS);
  world.isFaulty = false;
  world.calmSinceMs = clock.nowMs;
  world.note('no more trouble');
  const last = world.has('serverDiesLast') && world.has('endpoints') ? dieOrRestart(world) : contested(world);
  await Promise.all([world.has('ranges') || world.has('addresses') ? clock.wait(LAST_LIVES_MS) : undefined, last]);
  await untilConverged(world);
  world.hasEnded = true;
}

/** Ends one server for good, so that it must leave the endpoints, or restarts it, so that it must be published. */
async function dieOrRestart(world: World): Promise<void> {
  const { servers } = world;
  const chance = world.chance.of('the last death');
  const good = world.cluster.named().filter((address) => servers.isGood(address));
  const address = good[chance.pick(good.length)];
  if (address === undefined) return;
  // With many silent addresses, a pass may not probe this server while it restarts.
  if (good.length > 1 && !world.has('silentSpares') && chance.once(3)) return restart(world, address, chance);
  world.note(`${address} is dead from now on`);
  servers.set(address, { state: chance.oneOf(['down', 'silent', 'notReady']) });
}

/**
 * Publishes a withdrawn address again and again as another client. The next tick must remove it each time, although other corrections
 * of a contest wait.
 */
async function contested(world: World): Promise<void> {
  if (!world.has('contestedLast')) return;
  const { clock, endpoints, servers } = world;
  const chance = world.chance.of('the contest');
  await clock.wait(NEXT_SCHEDULE_MS);
  const [address = ''] = world.cluster.firstAddresses;
  await withdraw(world, address, LONG_MIN, chance);
  for (let left = 4; left > 0 && endpoints.isWithdrawn(address); left--) {
    const current = servers.plane.find<EndpointsObject>('endpoints', 'default', 'kubernetes');
    const [subset] = current?.subsets ?? [];
    const addresses = [...(subset?.addresses ?? []), { ip: address }];
    const published = { ...current, subsets: [{ ...subset, addresses }] };
    if (current !== undefined) servers.plane.place('endpoints', published as never);
    await clock.wait(NEXT_TICK_MS);
    if (!endpoints.isWithdrawn(address) || !endpoints.published().includes(address)) continue;
    world.violate('withdrawn', `${address} is withdrawn, another client published it, and no tick removed it`);
  }
}

/** Removes expired items from the table at random times, as the TTL does. */
async function sweep(world: World): Promise<void> {
  const { clock, table } = world;
  const sweeps = world.chance.of('sweeps');
  while (!world.hasEnded) {
    await clock.wait(1_000 + sweeps.pick(20_000));
    table.sweep();
  }
}

async function keepCopies(world: World): Promise<void> {
  const { clock, table, ranges } = world;
  while (!world.hasEnded) {
    await clock.wait(COPY_EVERY_MS);
    if (!world.has('ranges') || ranges.isRecord('ranges/serviceips')) table.keepCopy();
  }
}
