import type { EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { type DeregisterResult, undoDeregister } from '../../lib/deregister/deregister.ts';
import { deregisterAddress } from '../../lib/deregister/deregistration.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { registerCluster, updateCluster, withMode } from '../../lib/table/cluster-registration.ts';
import { claimCluster } from '../../lib/table/clusters.ts';
import type { Chance } from './clock.ts';
import { CLUSTER, STACK } from './cluster.ts';
import { endpointAddresses, isIPv6 } from './control-plane.ts';
import { LONGEST_WITHDRAWAL_MS, SKEW_MS } from './endpoint-truth.ts';
import { Process } from './process.ts';
import type { World } from './world.ts';

/** Work that began before a change ends within this time. */
export const DRAINED_MS = 45_000;
const STOP_MS = 20_000;
/**
 * The time after which a tick has certainly seen that a server is down: the ticks of the current minute might be late, but those
 * of the next minute see it.
 */
const SEEN_DOWN_MS = 75_000;
/** A time longer than a run, so that a wrong mark of a refused deregistration is still there at the end. */
export const LONG_MIN = LONGEST_WITHDRAWAL_MS / 60_000;

/** The time until the next tick has begun and has tried to write its leases. */
const UNWRITTEN_MS = 14_000;

/** Applies a spec and sets the addresses that are expected from now on. */
export async function apply(world: World, change: Partial<ClusterSpec>): Promise<void> {
  while (world.cluster.isLost) await world.clock.wait(1_000);
  world.cluster.spec = { ...world.cluster.spec, ...change };
  world.note(`the spec changes: ${JSON.stringify(change)}`);
  if (change.serviceClusterIPRanges !== undefined) {
    world.ranges.clearRecords();
    world.ranges.rangeChanged();
    world.cluster.inChargeSinceMs = world.clock.nowMs;
  }
  const { table } = await world.functions.kbctl();
  if (change.mode !== undefined) await updateCluster(table, CLUSTER, withMode(change.mode));
  else await registerCluster(table, world.cluster.spec);
  // Claims the cluster, as the endpoints loop does, before another stack can.
  if (!world.has('endpoints') || world.has('otherStack')) await claimCluster(table, CLUSTER, STACK);
  world.endpoints.expect(world.cluster.expected());
}

export async function withdraw(world: World, address: string, minutes: number, chance: Chance): Promise<void> {
  const { endpoints, clock } = world;
  endpoints.leaves(address);
  const askedAtMs = clock.nowMs;
  const event = { cluster: CLUSTER, address, untilMinutes: minutes };
  // A long withdrawal is requested once. A repeated request could mark the address after the first one was refused.
  const isSingle = minutes === LONG_MIN || chance.once(2);
  const answer = isSingle
    ? await world.functions.invoke<DeregisterResult>('deregister', event)
    : await world.functions.ask<DeregisterResult>('deregister', event, 30_000, chance);
  const shown = answer instanceof Error ? answer.message : JSON.stringify(answer);
  world.note(`deregister ${address} for ${minutes} min: ${shown}`);
  const known = answer instanceof Error ? undefined : answer;
  const isWithdrawn = known?.outcome === 'deregistered';
  if (isWithdrawn && !known.stillPublished) endpoints.withdrawn(address, askedAtMs, known.untilMs);
  // If the deregistration was refused, the address is not withdrawn. If it got no answer, it might still be running, or might
  // have marked the address.
  const endsAtMs = known?.outcome === 'refused' ? clock.nowMs : askedAtMs + minutes * 60_000;
  endpoints.left(address, endsAtMs + DRAINED_MS, { isAnswered: known !== undefined, isRepeated: !isSingle });
  // The clock of the person who undid the withdrawal may be fast.
  const isMarked = world.table.isMarked(address, clock.nowMs + SKEW_MS);
  if (known?.outcome === 'refused' && isSingle && endpoints.isAlone(address, askedAtMs) && isMarked) {
    world.violate('toldRefused', `the deregistration of ${address} was refused, and it is withdrawn`);
  }
}

/** Drains and restarts a server, which is published again before its withdrawal ends. */
export async function restart(world: World, address: string, chance: Chance): Promise<void> {
  const { clock, servers, endpoints } = world;
  const isItself = world.cluster.agents.has(address) && chance.once(2);
  await (isItself ? deregisterItself(world, address) : withdraw(world, address, LONG_MIN, chance));
  const downSinceMs = clock.nowMs;
  servers.set(address, { state: 'down' });
  await clock.wait(isItself ? chance.pick(SEEN_DOWN_MS) : SEEN_DOWN_MS);
  // Another incident may have started the server. While all servers are silent, a pass cannot prove that this one is down.
  const wasDown = servers.all.get(address)?.state === 'down';
  const wasSeenDown = isItself || endpoints.wasSeenDown(address, downSinceMs);
  servers.set(address, { state: 'up' });
  if (wasDown && wasSeenDown) endpoints.returned(address);
}

/** Deregisters a server as its agent does when the server ends: no tick needs to see it down. */
async function deregisterItself(world: World, address: string): Promise<void> {
  const agent = new Process(world, `agent-${address}-ends`, 'agent');
  const environment = world.functions.environmentOf(agent);
  const telemetry = environment.telemetry({ loop: 'deregister' });
  const { signal } = agent.startDeadline(STOP_MS);
  const request = { cluster: CLUSTER, address, goingDown: true };
  world.endpoints.leaves(address);
  const invocation = { environment, telemetry, remainingMs: () => STOP_MS };
  await deregisterAddress(request, invocation, { signal, wouldWrite: () => {} });
  world.endpoints.left(address, world.clock.nowMs);
}

export async function undo(world: World, address: string): Promise<void> {
  const { cluster, endpoints } = world;
  const { outcome } = await undoDeregister({ spec: cluster.spec, ...(await world.functions.kbctl()), address });
  if (outcome === 'undone') {
    endpoints.mayReturn(address);
    endpoints.returned(address);
  } else if (endpoints.isWithdrawn(address)) {
    world.violate('withdrawn', `${address} is withdrawn, and an undo found no withdrawal`);
  }
  world.note(`undo the deregistration of ${address}: ${outcome}`);
}

/** Drains, stops and starts API servers at overlapping times until the faults end, as a failing rollout does. */
export async function rollOut(world: World): Promise<void> {
  const { clock, servers } = world;
  const { firstAddresses } = world.cluster;
  const chance = world.chance.of('rollouts');
  const everyMs = chance.oneOf([1_500, 5_000, 15_000]);
  while (world.isFaulty) {
    await clock.wait(chance.pick(2 * everyMs));
    const address = chance.oneOf(firstAddresses);
    void rollOutOne(world, address, chance.of(`${address} at ${clock.nowMs}`));
    for (let left = chance.oneOf([0, 1, 4]); left > 0; left--) {
      void withdraw(world, chance.oneOf(firstAddresses), chance.oneOf([0.3, 0.5, 1]), chance);
    }
    if (chance.once(12)) await Promise.all(firstAddresses.map((each) => withdraw(world, each, LONG_MIN, chance)));
    if (servers.hasMoved) return;
  }
}

async function rollOutOne(world: World, address: string, chance: Chance): Promise<void> {
  const { clock, servers } = world;
  if (chance.once(2)) await withdraw(world, address, chance.oneOf([0.3, 1]), chance);
  if (chance.once(2)) {
    servers.set(address, { state: chance.oneOf(['down', 'silent']) });
    await clock.wait(chance.pick(chance.oneOf([3_000, 12_000, 40_000])));
    servers.set(address, { state: 'up' });
    // The network caused the failure and still loses calls.
    if (chance.once(3)) world.functions.lossyUntilMs = clock.nowMs + chance.pick(15_000);
    // The server may be drained again as soon as it answers.
    await clock.wait(chance.oneOf([50, chance.pick(12_000)]));
    if (chance.once(2)) await withdraw(world, address, chance.oneOf([0.3, 1]), chance);
  }
  if (chance.once(3)) await undo(world, address);
}

/**
 * Starts an API server. Without `--endpoint-reconciler-type=none`, it adds its own address to the Endpoints, and the next tick
 * may fail to write its lease.
 */
export function start(world: World, address: string): void {
  const { servers, cluster } = world;
  servers.set(address, { state: 'up' });
  const { plane } = servers.server(address);
  const endpoints = plane.find<EndpointsObject>('endpoints', 'default', 'kubernetes');
  const [subset] = endpoints?.subsets ?? [];
  if (!world.has('ownReconcilers') || !cluster.firstAddresses.includes(address) || isIPv6(address)) return;
  if (subset === undefined) return;
  const { nowMs } = world.clock;
  // The lease writes after one start are lost, but not those after the next start.
  const isNext = (world.table.lostWrites?.untilMs ?? 0) + UNWRITTEN_MS > nowMs;
  if (!isNext) world.table.lostWrites = { of: 'endpoints', key: 'masterleases', untilMs: nowMs + UNWRITTEN_MS };
  const addresses = [...new Set([...endpointAddresses(endpoints), address])].sort().map((ip) => ({ ip }));
  plane.place('endpoints', { ...endpoints, subsets: [{ ...subset, addresses }] } as EndpointsObject, address);
}
