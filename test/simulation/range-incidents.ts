import {
  pauseAllClusters,
  updateCluster,
  withAllocationClosed,
  withPause,
} from '../../lib/table/cluster-registration.ts';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import { copyOf } from '../support/memory-table.ts';
import type { Chance } from './clock.ts';
import { CLUSTER } from './cluster.ts';
import { apply, DRAINED_MS, withdraw } from './operators.ts';
import { repairOnce } from './passes.ts';
import { INTERVAL_MS } from './settings.ts';
import type { World } from './world.ts';

/** The time that a save takes, including its repetitions. */
const SAVED_MS = 3_000;
/** The time without a repair after which allocation closes, by any clock: three intervals. */
const CLOSED_BY_ITSELF_MS = 3 * INTERVAL_MS + 10_000;

/** Makes the passes observe while another allocator is in charge, and enforce afterwards. */
export async function observe(world: World, chance: Chance): Promise<void> {
  const { clock, ranges } = world;
  if (!world.cluster.leave()) return;
  ranges.clearRecords();
  world.cluster.inChargeSinceMs = undefined;
  await apply(world, { mode: 'observe' });
  world.cluster.observedSinceMs = clock.nowMs;
  await clock.wait(DRAINED_MS);
  if (world.has('ranges')) world.people.placeUnrecorded(chance);
  await clock.wait(10_000 + chance.pick(50_000));
  world.cluster.observedSinceMs = Number.POSITIVE_INFINITY;
  await apply(world, { mode: 'enforce' });
  world.cluster.inChargeSinceMs = clock.nowMs;
  world.cluster.isAway = false;
  await runAtOnce(world, chance);
}

const BEFORE_TICK_MS = 8_000;

/** Restores a copy of the table, either by the restore procedure or so old that allocation closes automatically. */
export async function restore(world: World, chance: Chance): Promise<void> {
  const { clock, table, ranges } = world;
  const byHand = chance.once(3);
  while (world.table.copies.length === 0 && world.isFaulty) await clock.wait(2_000);
  const copy = world.table.copies[chance.pick(world.table.copies.length)];
  if (copy === undefined || !world.cluster.leave()) return;
  world.functions.stops++;
  await clock.wait(Math.max(DRAINED_MS, byHand ? 0 : copy.atMs + CLOSED_BY_ITSELF_MS - clock.nowMs));
  ranges.clearRecords();
  const registration = table.find(CLUSTERS, CLUSTER);
  table.store = copyOf(copy.store);
  if (chance.once(3)) table.storeAsBefore();
  // The restore procedure applies the spec again.
  if (registration !== undefined) table.store.get(CLUSTERS)?.set(CLUSTER, registration);
  world.note(`the table of ${world.timeOf(copy.atMs)} is restored${byHand ? ', and closed' : ''}`);
  if (byHand) await closeRanges(world);
  ranges.restored();
  // These stand for the Services that were created after the copy was made.
  if (world.has('ranges')) world.people.placeUnrecorded(chance);
  world.endpoints.restored();
  world.cluster.pauses.delete('all');
  for (const address of world.servers.all.keys()) world.endpoints.mayReturn(address);
  world.cluster.inChargeSinceMs = clock.nowMs;
  world.functions.stops--;
  world.cluster.isAway = false;
  if (world.has('endpoints') && chance.once(2)) {
    // Agents have refreshed their leases, but no tick has seen the other servers yet.
    await clock.wait(chance.pick(BEFORE_TICK_MS));
    await withdraw(world, chance.oneOf(world.cluster.firstAddresses), 1, chance);
  }
  if (!byHand) await saveIsLost(world, chance);
}

/** Loses the save of the next pass, while pipelines release items that the table has held for them since before the restore. */
async function saveIsLost(world: World, chance: Chance): Promise<void> {
  const { clock, ranges } = world;
  await whenAPassHasRead(world, chance, 1);
  world.table.lostWrites = { of: 'repair', key: 'ranges/serviceips', untilMs: clock.nowMs + SAVED_MS };
  const { taken, holds } = world.table.stored('ranges/serviceips');
  const unowned = [...taken].filter((item) => item !== '10.0.0.1' && ranges.ownersOf(item).length === 0);
  for (const [index, value] of unowned.entries()) {
    const items = [{ range: 'serviceips', value }];
    const owner = holds.get(value)?.owner;
    const request = { requestId: `late-${clock.nowMs}-${index}`, operation: 'release', items, ...(owner && { owner }) };
    clock.in(chance.pick(SAVED_MS), () => {
      // A release without an owner would free an item that has another owner by now.
      const isOthers = world.table.stored('ranges/serviceips').holds.has(value) || ranges.ownersOf(value).length > 0;
      if (owner !== undefined || !isOthers) void world.functions.invoke('allocate', { cluster: CLUSTER, ...request });
    });
  }
}

async function closeRanges(world: World): Promise<void> {
  const { table } = await world.functions.kbctl();
  await updateCluster(table, CLUSTER, withAllocationClosed);
}

/** Widens or moves the range, or closes all allocation by hand for a moment. */
export async function changeRange(world: World, chance: Chance): Promise<void> {
  if (world.cluster.isAway) return;
  if (chance.once(2)) await whenAPassHasRead(world, chance);
  if (world.cluster.isAway) return;
  world.cluster.disturbedAtMs = world.clock.nowMs;
  if (chance.once(2)) await closeRanges(world);
  else await widenOrMove(world, chance);
  await runAtOnce(world, chance);
}

/** Waits until a repair pass has read its registration, and delays its next calls. */
async function whenAPassHasRead(world: World, chance: Chance, longestHaltMs = 8_000): Promise<void> {
  const read = new Promise<void>((resolve) => {
    world.table.onRegistrationRead = (by) => {
      if (by.kind !== 'repair') return;
      world.table.onRegistrationRead = undefined;
      by.freeze(chance.pick(longestHaltMs));
      resolve();
    };
  });
  await world.clock.within(INTERVAL_MS, read);
}

async function widenOrMove(world: World, chance: Chance): Promise<void> {
  const [first, ...others] = world.cluster.spec.serviceClusterIPRanges;
  const [base = '', length] = first.split('/');
  // The last range may begin within the first one.
  const moved = base === '10.0.0.0' ? [`10.0.1.0/${length}`, '10.0.0.16/28'] : [`10.0.0.0/${length}`];
  const isWider = base.endsWith('.0') && chance.once(2);
  const changed = isWider ? `${base}/${Math.max(24, Number(length) - 1)}` : moved[chance.pick(moved.length)];
  await apply(world, { serviceClusterIPRanges: [changed, ...others] as never });
}

/** Runs the passes at once, as the documentation asks for, up to three times. */
async function runAtOnce(world: World, chance: Chance): Promise<void> {
  for (let left = chance.pick(4); left > 0; left--) {
    await world.clock.wait(chance.pick(chance.oneOf([100, 3_000])));
    repairOnce(world);
  }
}

/** Creates ever more Services in one namespace, whose quota refuses them. */
export async function flood(world: World, chance: Chance): Promise<void> {
  if (!world.has('wideRange') || !world.has('webhook')) return;
  await Promise.all(Array.from({ length: 40 }, (_, index) => world.people.createRefused(`flood-${index}`, chance)));
}

/** Stops only the repairs. Allocation closes automatically, and then Services are created without the table. */
export async function repairsStop(world: World, chance: Chance): Promise<void> {
  const { clock, ranges } = world;
  if (!world.cluster.leave()) return;
  world.functions.areRepairsStopped = true;
  await clock.wait(DRAINED_MS + CLOSED_BY_ITSELF_MS);
  ranges.clearRecords();
  world.cluster.inChargeSinceMs = undefined;
  world.people.placeUnrecorded(chance);
  await clock.wait(5_000 + chance.pick(30_000));
  world.cluster.inChargeSinceMs = clock.nowMs;
  world.functions.areRepairsStopped = false;
  world.cluster.isAway = false;
}

/**
 * Deletes the registration, as an operator in the console might, and registers the cluster again later. Services are created
 * without the table meanwhile.
 */
export async function loseRegistration(world: World, chance: Chance): Promise<void> {
  const { clock, ranges, table } = world;
  if (!world.cluster.leave()) return;
  table.store.get(CLUSTERS)?.delete(CLUSTER);
  world.cluster.isLost = true;
  world.cluster.pauses.delete('cluster');
  ranges.clearRecords();
  world.cluster.inChargeSinceMs = undefined;
  await clock.wait(DRAINED_MS);
  if (world.has('ranges')) world.people.placeUnrecorded(chance);
  await clock.wait(chance.pick(20_000));
  world.cluster.isLost = false;
  await apply(world, {});
  world.cluster.inChargeSinceMs = clock.nowMs;
  world.cluster.isAway = false;
}

export async function pause(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const { table, nowMs } = await world.functions.kbctl();
  const untilMs = nowMs() + 10_000 + chance.pick(50_000);
  const pause = { untilMs, reason: 'maintenance', by: 'me' };
  const isAll = chance.once(2);
  if (isAll) await pauseAllClusters(table, pause);
  else if (!(await updateCluster(table, CLUSTER, withPause(pause)))) return;
  world.note(`${isAll ? 'all clusters are' : 'the cluster is'} paused until ${world.timeOf(untilMs)}`);
  world.cluster.pauses.set(isAll ? 'all' : 'cluster', { fromMs: clock.nowMs, untilMs });
  // A spec that is applied during a pause does not end the pause.
  if (chance.once(3)) await apply(world, { maxEventsPerPass: 10 + chance.pick(10) });
}
