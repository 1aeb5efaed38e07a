import { undoDeregister } from '../../lib/api-servers/deregister.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { DeregistrationAnswer } from '../../lib/dispatch/deregistration.ts';
import {
  closeAllocation,
  pauseAllClusters,
  pauseCluster,
  registerCluster,
  setClusterMode,
} from '../../lib/table/cluster-registration.ts';
import { CLUSTERS } from '../../lib/table/clusters.ts';
import type { Chance } from './clock.ts';
import { LONGEST_WITHDRAWAL_MS } from './endpoint-truth.ts';
import { ADDRESSES, FIRST_ADDRESSES } from './servers.ts';
import { INTERVAL_MS } from './settings.ts';
import type { Store } from './stand-in-table.ts';
import { RANGE_KEYS } from './stored-items.ts';
import { CLUSTER, type World } from './world.ts';

/** What was begun before a change has ended after this. */
const DRAINED_MS = 45_000;
/** More than three intervals of the repairs. */
const OLD_COPY_MS = 3 * INTERVAL_MS + 10_000;

/** Longer than a run: a mark that a refusal leaves is seen in the end. */
const LONG_MIN = LONGEST_WITHDRAWAL_MS / 60_000;
/** From a change of the secret to that of the servers: no pass has read the secret before it, and connects after it. */
const ROLLED_OUT_MS = 15_000;

type Incident = (world: World, chance: Chance) => Promise<void>;

/** The functions do not run for some time. */
async function outage(world: World, chance: Chance): Promise<void> {
  world.isStopped = true;
  await world.clock.wait(15_000 + chance.pick(60_000));
  world.isStopped = false;
}

/** No API server is reached, then one, then all. */
async function networkOutage({ servers, clock }: World, chance: Chance): Promise<void> {
  for (const address of ADDRESSES) servers.cut(address, true);
  await clock.wait(12_000 + chance.pick(40_000));
  servers.cut(chance.oneOf(ADDRESSES), false);
  await clock.wait(chance.pick(9_000));
  for (const address of ADDRESSES) servers.cut(address, false);
}

/** One API server is not reached for a moment. */
async function blip({ servers, clock }: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(ADDRESSES);
  servers.cut(address, true);
  await clock.wait(200 + chance.pick(chance.oneOf([3_000, 14_000])));
  servers.cut(address, false);
}

async function serverDies({ servers, clock }: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(ADDRESSES);
  servers.set(address, { state: chance.oneOf(['down', 'silent', 'notReady']) });
  await clock.wait(5_000 + chance.pick(60_000));
  servers.set(address, { state: 'up' });
}

/** It says so, ends, and comes back. */
async function serverRestarts({ servers, clock }: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(ADDRESSES);
  servers.set(address, { state: 'shuttingDown' });
  await clock.wait(1_000 + chance.pick(15_000));
  servers.set(address, { state: 'down' });
  await clock.wait(1_000 + chance.pick(30_000));
  servers.set(address, { state: 'up' });
}

async function agentDies(world: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(FIRST_ADDRESSES);
  world.deadAgents.add(address);
  await world.clock.wait(10_000 + chance.pick(60_000));
  world.deadAgents.delete(address);
}

/** Withdraws a server; perhaps a second at the same time, a second time, or not after all. */
async function drain(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const [one, other] = [chance.oneOf(FIRST_ADDRESSES), chance.oneOf(FIRST_ADDRESSES)];
  // Not all of them can be.
  const minutes = chance.oneOf([0.5, LONG_MIN]);
  if (chance.once(3)) await Promise.all(FIRST_ADDRESSES.map((address) => withdraw(world, address, minutes, chance)));
  await Promise.all([
    withdraw(world, one, chance.oneOf([0.5, 1, 2]), chance),
    chance.once(2) ? withdraw(world, other, chance.oneOf([0.5, 1, 2]), chance) : undefined,
  ]);
  await clock.wait(chance.pick(30_000));
  if (chance.once(2)) await withdraw(world, one, 0.5, chance);
  if (chance.once(3)) await undo(world, one);
}

async function withdraw(world: World, address: string, minutes: number, chance: Chance): Promise<void> {
  const { endpoints, clock } = world;
  endpoints.leaves(address);
  const askedAtMs = clock.nowMs;
  const event = { cluster: CLUSTER, address, untilMinutes: minutes };
  // A repeated request may mark it after the first was refused: then a long withdrawal would be no defect.
  const answer =
    minutes === LONG_MIN
      ? await world.invoke<DeregistrationAnswer>('deregister', event)
      : await world.ask<DeregistrationAnswer>('deregister', event, 30_000, chance);
  const shown = answer instanceof Error ? answer.message : JSON.stringify(answer);
  world.note(`deregister ${address} for ${minutes} min: ${shown}`);
  const known = answer instanceof Error ? undefined : answer;
  const isWithdrawn = known?.outcome === 'deregistered';
  if (isWithdrawn && !known.stillPublished) endpoints.withdrawn(address, askedAtMs, known.untilMs);
  // A refusal withdraws nothing. An invocation that gave no answer may still run, or have marked it.
  const endsAtMs = known?.outcome === 'refused' ? clock.nowMs : askedAtMs + minutes * 60_000;
  endpoints.left(address, endsAtMs + DRAINED_MS);
}

async function undo(world: World, address: string): Promise<void> {
  const { spec, clock, endpoints } = world;
  endpoints.mayReturn(address);
  const table = world.tableOf(world.desk);
  const { outcome } = await undoDeregister({ spec, table, address, nowMs: () => clock.nowMs });
  world.note(`undo the deregistration of ${address}: ${outcome}`);
}

/** The passes only observe while another allocator is in charge, and enforce afterwards. */
async function observe(world: World, chance: Chance): Promise<void> {
  const { clock, ranges } = world;
  if (world.isAway) return;
  world.isAway = true;
  world.isDisturbed = true;
  for (const key of RANGE_KEYS) ranges.setRecord(key, false);
  world.inChargeSinceMs = undefined;
  await apply(world, { mode: 'observe' });
  await clock.wait(DRAINED_MS);
  for (let left = chance.pick(4); left > 0; left--) world.people.placeUnrecorded(chance);
  await clock.wait(10_000 + chance.pick(50_000));
  await apply(world, { mode: 'enforce' });
  world.inChargeSinceMs = clock.nowMs;
  world.isAway = false;
}

/** A copy of the table takes its place, as the restore procedure says, or old enough to close by itself. */
async function restore(world: World, chance: Chance): Promise<void> {
  const { clock, table, ranges } = world;
  const byHand = chance.once(2);
  const usable = world.copies.filter(({ atMs }) => byHand || atMs < clock.nowMs - OLD_COPY_MS);
  const copy = usable[chance.pick(usable.length)];
  if (copy === undefined || world.isAway) return;
  world.isAway = true;
  world.isDisturbed = true;
  world.isStopped = true;
  await clock.wait(DRAINED_MS);
  for (const key of RANGE_KEYS) ranges.setRecord(key, false);
  const registration = table.find(CLUSTERS, CLUSTER);
  table.store = copyOf(copy.store);
  // The spec is applied again.
  if (registration !== undefined) table.store.get(CLUSTERS)?.set(CLUSTER, registration);
  world.note(`the table of ${world.timeOf(copy.atMs)} is restored${byHand ? ', and closed' : ''}`);
  if (byHand) await closeRanges(world);
  ranges.restored();
  world.endpoints.restored();
  world.pauses.delete('all');
  for (const address of ADDRESSES) world.endpoints.mayReturn(address);
  world.inChargeSinceMs = clock.nowMs;
  world.isStopped = false;
  world.isAway = false;
}

async function closeRanges(world: World): Promise<void> {
  await closeAllocation(world.tableOf(world.desk), CLUSTER);
}

/** The range becomes wider, or all allocation is closed by hand for a moment. */
async function changeRange(world: World, chance: Chance): Promise<void> {
  if (world.isAway) return;
  world.isDisturbed = true;
  if (chance.once(3)) return closeRanges(world);
  const [first, ...others] = world.spec.serviceClusterIPRanges;
  const bits = Math.max(24, Number(first.split('/')[1]) - 1);
  await apply(world, { serviceClusterIPRanges: [`10.0.0.0/${bits}`, ...others] as never });
}

/** An API server is replaced: another address in the spec. */
async function replaceServer(world: World, chance: Chance): Promise<void> {
  const { spec } = world;
  const named = spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  const spare = ADDRESSES.filter((address) => !named.includes(address) && !world.servers.records.includes(address));
  const [old, next] = [named[chance.pick(named.length)], spare[chance.pick(spare.length)]];
  if (old === undefined || next === undefined || world.has('oneServerKubeconfig')) return;
  const apiServers = spec.apiServers.map((server) =>
    'address' in server && server.address === old ? { ...server, address: next } : server,
  );
  await apply(world, { apiServers });
}

async function recordChanges(world: World, chance: Chance): Promise<void> {
  if (!world.has('dns')) return;
  const named = world.spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  const spare = ADDRESSES.filter((address) => !named.includes(address));
  const [address = ADDRESSES[3]] = [spare[chance.pick(spare.length)]];
  for (const record of world.servers.records) world.servers.formerRecords.add(record);
  world.servers.records = [address];
  world.expectAddresses();
}

/** All passes pause for a while: a cluster's, or those of all. */
async function pause(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const table = world.tableOf(world.desk);
  const untilMs = clock.nowMs + 10_000 + chance.pick(50_000);
  const pause = { untilMs, reason: 'maintenance', by: 'me' };
  const isAll = chance.once(2);
  if (isAll) await pauseAllClusters(table, pause);
  else await pauseCluster(table, CLUSTER, pause);
  world.note(`${isAll ? 'all clusters are' : 'the cluster is'} paused until ${world.timeOf(untilMs)}`);
  world.pauses.set(isAll ? 'all' : 'cluster', { fromMs: clock.nowMs, untilMs });
}

async function deployment(world: World): Promise<void> {
  world.note('every process ends');
  world.endProcesses();
}

/** The secret gets the next token, and the next CA beside the old one; then each server gets its certificate of that CA. */
async function rotate(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  if (servers.isRotating) return;
  servers.isRotating = true;
  servers.hasRotated = true;
  const { token: oldToken, ca: oldCa } = servers;
  const [token, ca] = [`Bearer ${chance.pick(1_000_000)}`, `ca-${chance.pick(1_000_000)}`];
  for (const { tokens } of servers.all.values()) tokens.add(token);
  servers.renew({ ca: `${oldCa}+${ca}`, token });
  await clock.wait(ROLLED_OUT_MS + chance.pick(10_000));
  for (const server of servers.all.values()) {
    server.ca = ca;
    server.tokens.delete(oldToken);
    world.note(`${server.address} has a certificate of ${ca}`);
    await clock.wait(chance.pick(chance.oneOf([500, 8_000])));
  }
  await clock.wait(ROLLED_OUT_MS);
  servers.renew({ ca, token });
  servers.isRotating = false;
}

/** The control plane moves to other servers; the old ones still answer, from an etcd that is written no more. */
async function moveControlPlane(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  if (world.has('oneServerKubeconfig') || world.has('dns') || world.isAway || servers.hasMoved) return;
  servers.hasMoved = true;
  const named = world.spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  const others = ADDRESSES.filter((address) => !named.includes(address));
  world.note('the control plane moves');
  servers.move(others);
  const apiServers = others.map(
    (address) => ({ address, kind: 'server', probe: { path: '/readyz', authenticate: false } }) as const,
  );
  await apply(world, { apiServers });
  await clock.wait(chance.pick(10_000));
}

/** One namespace creates Services that its quota refuses, more and more of them. */
async function flood(world: World, chance: Chance): Promise<void> {
  if (!world.has('wideRange') || !world.has('webhook')) return;
  await Promise.all(Array.from({ length: 45 }, (_, index) => world.people.createRefused(`flood-${index}`, chance)));
}

/** Every process, and the network, stands still for a moment. */
async function stall({ clock }: World, chance: Chance): Promise<void> {
  clock.stall(500 + chance.pick(chance.oneOf([2_500, 20_000])));
}

/** Applies a spec; from then on functions that read it know it. */
async function apply(world: World, change: Partial<ClusterSpec>): Promise<void> {
  world.spec = { ...world.spec, ...change };
  world.note(`the spec changes: ${JSON.stringify(change)}`);
  if (change.serviceClusterIPRanges !== undefined) {
    for (const key of RANGE_KEYS) world.ranges.setRecord(key, false);
    world.inChargeSinceMs = world.clock.nowMs;
  }
  const table = world.tableOf(world.desk);
  if (change.mode !== undefined) await setClusterMode(table, CLUSTER, change.mode);
  else await registerCluster(table, world.spec);
  world.expectAddresses();
}

export function copyOf(store: Store): Store {
  return new Map([...store].map(([cluster, items]) => [cluster, new Map(items)]));
}

export const INCIDENTS: Readonly<Record<string, Incident>> = {
  outage,
  networkOutage,
  blip,
  serverDies,
  serverRestarts,
  agentDies,
  drain,
  observe,
  restore,
  changeRange,
  replaceServer,
  recordChanges,
  pause,
  deployment,
  rotate,
  moveControlPlane,
  flood,
  stall,
};
