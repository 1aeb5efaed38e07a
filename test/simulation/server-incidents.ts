import type { EndpointSliceObject, EndpointsObject } from '../../lib/cluster/published-objects.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { aSlice } from '../support/an-endpoints.ts';
import type { Chance } from './clock.ts';
import { endpointAddresses, isIPv6, sliceAddresses } from './control-plane.ts';
import { FOREIGN } from './endpoint-truth.ts';
import { apply, LONG_MIN, start, undo, withdraw } from './operators.ts';
import { ADDRESSES, BALANCED, HOST } from './servers.ts';
import type { World } from './world.ts';

/**
 * The time from a change of the secret to the change of the servers. It is so long that no pass with the old secret connects to
 * the changed servers.
 */
const ROLLED_OUT_MS = 15_000;
const WAITED_FOR_MS = 30_000;
/** The time after which a server that is down is no longer published. */
const REMOVED_AFTER_MS = 35_000;
const LATEST_MS = 18_000;
/** The time for which a function keeps a kubeconfig: a minute, and the difference of two clocks. */
const KNOWN_MS = 65_000;
const UNDO_LOST_MS = 3_000;
const UNANSWERED_MS = 15_000;
/**
 * The time for which deregistrations stand still after they have read the leases, so that all of them read before one of them
 * writes.
 */
const HALT_MS = 200;

/** Cuts off all API servers, then perhaps restores one, then all. */
export async function networkOutage({ servers, clock }: World, chance: Chance): Promise<void> {
  servers.cutAll(true);
  await clock.wait(12_000 + chance.pick(40_000));
  if (chance.once(2)) servers.cut(chance.oneOf(ADDRESSES), false);
  await clock.wait(chance.pick(9_000));
  servers.cutAll(false);
}

/** Ends an API server. Before its lease ends, all probes fail, but the load balancer still answers. */
export async function probeOutage(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  const died = serverDies(world, chance, 60_000);
  await clock.wait(12_000 + chance.pick(20_000));
  servers.cutProbes(true);
  await clock.wait(10_000 + chance.pick(30_000));
  servers.cutProbes(false);
  await died;
}

/**
 * Cuts off the API servers of one family. The paths of the other family work. When the leases of the family have expired, perhaps
 * only a slice of another client has its addresses.
 */
export async function familyOutage(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  const { firstAddresses } = world.cluster;
  const isSecond = chance.once(2);
  const family = firstAddresses.filter((address) => isIPv6(address) === isSecond);
  for (const address of family) servers.cut(address, true);
  await clock.wait(15_000 + chance.pick(40_000));
  const [first] = family;
  if (isSecond && first !== undefined && chance.once(2)) {
    servers.plane.remove('endpointslices', 'default', 'kubernetes-ipv6');
    placeForeign(world, first, chance);
    await clock.wait(15_000 + chance.pick(15_000));
  }
  for (const address of family) servers.cut(address, false);
}

/** Withdraws an API server, whose address then leaves the spec and returns before the withdrawal ends. */
export async function specDropsWithdrawn(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const { spec } = world.cluster;
  const address = chance.oneOf(world.cluster.firstAddresses);
  const apiServers = spec.apiServers.filter((server) => !('address' in server) || server.address !== address);
  if (apiServers.length === spec.apiServers.length || apiServers.length < 2) return;
  await withdraw(world, address, LONG_MIN, chance);
  await clock.wait(chance.pick(15_000));
  await apply(world, { apiServers: apiServers as never });
  await clock.wait(15_000 + chance.pick(40_000));
  await apply(world, { apiServers: spec.apiServers });
}

export async function blip({ servers, clock, cluster }: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(cluster.firstAddresses);
  servers.cut(address, true);
  await clock.wait(200 + chance.pick(chance.oneOf([3_000, 14_000])));
  servers.cut(address, false);
}

export async function serverDies(
  world: World,
  chance: Chance,
  longMs = chance.pick(chance.oneOf([9_000, 40_000])),
): Promise<void> {
  const { servers, clock } = world;
  const address = oneExpected(world, chance);
  servers.set(address, { state: chance.oneOf(['down', 'silent', 'notReady']) });
  await clock.wait(chance.oneOf([3_000, 5_000]) + longMs);
  start(world, address);
}

function oneExpected(world: World, chance: Chance): string {
  const expected = world.cluster.expected().filter((address) => world.servers.all.has(address));
  return expected[chance.pick(expected.length)] ?? chance.oneOf(ADDRESSES);
}

/** Restarts an API server, which reports its shutdown first. */
export async function serverRestarts(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  const address = oneExpected(world, chance);
  servers.set(address, { state: 'shuttingDown' });
  await clock.wait(1_000 + chance.pick(15_000));
  servers.set(address, { state: 'down' });
  await clock.wait(1_000 + chance.pick(30_000));
  start(world, address);
}

export async function agentDies(world: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(world.cluster.firstAddresses);
  world.cluster.deadAgents.add(address);
  await world.clock.wait(10_000 + chance.pick(30_000));
  world.cluster.deadAgents.delete(address);
}

/** Delays a write that creates the Endpoints or a slice, or adds an address to one, and drains that address meanwhile. */
export async function lateAddition(world: World, chance: Chance): Promise<void> {
  const { clock, endpoints, servers } = world;
  if (world.servers.delayOfWrite !== undefined) return;
  world.servers.delayOfWrite = () => undefined;
  const removed = chance.oneOf(world.cluster.firstAddresses);
  if (chance.once(2)) {
    servers.set(removed, { state: 'down' });
    await clock.wait(REMOVED_AFTER_MS);
    start(world, removed);
  } else await endpointsDeleted(world, chance);
  const late = chance.oneOf(['endpoints', 'endpointslices']);
  const added = await new Promise<string | undefined>((resolve) => {
    world.servers.delayOfWrite = (kind, body) => {
      const object = JSON.parse(body);
      const [address] = [...endpointAddresses(object), ...sliceAddresses(object)].filter(
        (each) => !endpoints.publishedIn(kind, object.metadata.name).includes(each),
      );
      if (address === undefined || kind !== late) return undefined;
      world.servers.delayOfWrite = () => undefined;
      world.note(`a write of ${kind} with ${address} is late`);
      resolve(address);
      return chance.between(3_000, LATEST_MS);
    };
    clock.in(WAITED_FOR_MS, () => resolve(undefined));
  });
  await clock.wait(chance.pick(2_000));
  if (added !== undefined) await withdraw(world, added, 1, chance);
  await clock.wait(LATEST_MS);
  world.servers.delayOfWrite = undefined;
}

/** Deletes the Endpoints as another client, perhaps with their slices. The next pass creates them again. */
export async function endpointsDeleted({ servers, endpoints }: World, chance: Chance): Promise<void> {
  // A late creation may now publish addresses that were withdrawn meanwhile. The next pass removes them.
  for (const address of servers.all.keys()) endpoints.mayReturn(address);
  servers.plane.remove('endpoints', 'default', 'kubernetes');
  if (!chance.once(4)) servers.plane.remove('endpointslices', 'default', 'kubernetes');
  if (chance.once(2)) servers.plane.remove('endpointslices', 'default', 'kubernetes-ipv6');
}

/** Overwrites the published addresses several times as another client, so that passes write with backoff afterwards. */
export async function overwrite({ servers, clock }: World, chance: Chance): Promise<void> {
  for (let left = chance.between(2, 3); left > 0; left--) {
    const current = servers.plane.find<EndpointsObject>('endpoints', 'default', 'kubernetes');
    const [subset] = current?.subsets ?? [];
    const addresses = subset?.addresses?.slice(0, 1);
    const subsets = [{ ...subset, addresses }];
    if (addresses !== undefined) servers.plane.place('endpoints', { ...current, subsets } as never);
    await clock.wait(chance.between(11_000, 14_000));
  }
}

/** Creates a slice of the Service as another client. Perhaps that client also deletes the others, or an API server dies. */
export async function foreignSlice(world: World, chance: Chance): Promise<void> {
  const { servers, cluster } = world;
  if (servers.plane.slices().some(({ metadata }) => metadata.name.startsWith(FOREIGN))) return;
  const address = chance.oneOf(cluster.firstAddresses);
  if (chance.once(2)) await endpointsDeleted(world, chance);
  placeForeign(world, address, chance);
  if (chance.once(2)) await serverDies(world, chance);
}

function placeForeign({ servers }: World, address: string, chance: Chance): void {
  const labels = { 'kubernetes.io/service-name': 'kubernetes' };
  const metadata = { namespace: 'default', name: `${FOREIGN}${chance.pick(1_000)}`, labels };
  const addressType = isIPv6(address) ? 'IPv6' : 'IPv4';
  const slice: EndpointSliceObject = { ...aSlice([address], []), addressType, metadata };
  servers.plane.place('endpointslices', slice);
}

/** Loses the look-up of the host name in the spec, or of one of the two host names of the load balancer in the spec. */
export async function nameFails(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  servers.lostName = world.has('balancer') ? BALANCED[chance.pick(BALANCED.length)]?.name : HOST;
  await clock.wait(chance.between(10_000, 50_000));
  servers.lostName = undefined;
}

/** Replaces an API server: the spec gets another address. */
export async function replaceServer(world: World, chance: Chance): Promise<void> {
  const named = world.cluster.named();
  const spare = ADDRESSES.filter((address) => !named.includes(address) && !world.servers.records.includes(address));
  const [old, next] = [named[chance.pick(named.length)], spare[chance.pick(spare.length)]];
  if (old === undefined || next === undefined || world.has('oneServerKubeconfig')) return;
  const apiServers = world.cluster.spec.apiServers.map((server) =>
    'address' in server && server.address === old ? { ...server, address: next } : server,
  );
  await apply(world, { apiServers });
}

export async function recordChanges(world: World, chance: Chance): Promise<void> {
  if (!world.has('dns')) return;
  const named = world.cluster.named();
  const spare = ADDRESSES.filter((address) => !named.includes(address));
  const [address = ADDRESSES[3]] = [spare[chance.pick(spare.length)]];
  for (const record of world.servers.records) world.servers.formerRecords.add(record);
  world.servers.records = [address];
  world.endpoints.expect(world.cluster.expected());
}

/** Adds the next CA to the secret and replaces its token. Then each server gets a certificate of the next CA. */
export async function rotate(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  if (servers.isRotating) return;
  servers.isRotating = true;
  servers.hasRotated = true;
  const { token: oldToken, ca: oldCa } = servers;
  const [token, ca] = [`Bearer ${chance.pick(1_000_000)}`, `ca-${chance.pick(1_000_000)}`];
  for (const { tokens } of servers.all.values()) tokens.add(token);
  servers.renew({ ca: `${oldCa}+${ca}`, token });
  await clock.wait(ROLLED_OUT_MS + chance.pick(10_000));
  // The server that the load balancer prefers is the last. Until then calls with the old kubeconfig work, and probes of the
  // other servers fail.
  const longMs = chance.oneOf([500, 8_000, 25_000, 25_000]);
  for (const server of [...servers.all.values()].reverse()) {
    server.ca = ca;
    server.tokens.delete(oldToken);
    world.note(`${server.address} has a certificate of ${ca}`);
    const isExpected = world.cluster.expected().includes(server.address);
    await clock.wait(isExpected ? chance.between(longMs / 2, longMs) : chance.pick(500));
  }
  await clock.wait(ROLLED_OUT_MS);
  servers.renew({ ca, token });
  servers.isRotating = false;
}

/** Moves the control plane to other servers. The old ones still answer, from an etcd that no longer receives writes. */
export async function moveControlPlane(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  if (world.has('oneServerKubeconfig') || world.has('dns') || world.cluster.isAway || servers.hasMoved) return;
  const named = world.cluster.named();
  const others = ADDRESSES.filter((address) => !named.includes(address));
  world.note('the control plane moves');
  servers.move(others, !servers.isRotating && chance.once(2));
  // A deregistration that is under way, or has an old kubeconfig, may write to the old control plane.
  for (const address of new Set([...ADDRESSES, ...named])) world.endpoints.mayReturn(address, clock.nowMs + KNOWN_MS);
  await apply(world, { apiServers: others.map((address) => aServer(address)) });
  await clock.wait(10_000 + chance.pick(30_000));
}

/**
 * Withdraws a server, and sometimes a second one at the same time. Sometimes withdraws the first server again, or undoes its
 * withdrawal.
 */
export async function drain(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const { firstAddresses } = world.cluster;
  const [one, other] = [chance.oneOf(firstAddresses), chance.oneOf(firstAddresses)];
  // Withdraws every server. One of these deregistrations must be refused, because one server must stay published.
  const minutes = chance.oneOf([0.5, LONG_MIN]);
  if (chance.once(3)) await Promise.all(firstAddresses.map((address) => withdraw(world, address, minutes, chance)));
  await Promise.all([
    withdraw(world, one, chance.oneOf([1, 2, LONG_MIN]), chance),
    chance.once(2) ? withdraw(world, other, chance.oneOf([0.5, 1, 2]), chance) : undefined,
  ]);
  await clock.wait(chance.pick(30_000));
  // A second, shorter withdrawal does not shorten the first one.
  if (!chance.once(3)) await withdraw(world, one, 0.5, chance);
  if (!chance.once(3)) return;
  // An undo alone does not publish a server that does not answer.
  const isDown = chance.once(2);
  if (isDown) world.servers.set(one, { state: chance.oneOf(['down', 'silent']) });
  if (isDown) await clock.wait(UNANSWERED_MS);
  await undo(world, one);
  if (isDown) await clock.wait(UNANSWERED_MS);
  if (isDown) world.servers.set(one, { state: 'up' });
}

/** Withdraws all servers several times. Some requests are refused, and the other withdrawals are undone. */
export async function drainAll(world: World, chance: Chance): Promise<void> {
  for (let left = 1 + chance.pick(4); left > 0; left--) {
    const some = world.cluster.firstAddresses.map(async (address) => {
      await world.clock.wait(chance.pick(400));
      await withdraw(world, address, LONG_MIN, chance);
    });
    await Promise.all(some);
    await world.clock.wait(chance.pick(3_000));
    await Promise.all(world.cluster.firstAddresses.map((address) => undo(world, address)));
  }
}

/**
 * Withdraws all servers at the same moment. The last deregistration has to undo its own mark, and its writes are lost while
 * people undo the other withdrawals.
 */
export async function undoIsLost(world: World, chance: Chance): Promise<void> {
  const { clock } = world;
  const { firstAddresses } = world.cluster;
  if (world.table.onLeases !== undefined) return;
  world.table.haltOfDrainsMs = HALT_MS;
  const last = new Promise<string | undefined>((resolve) => {
    let before: readonly string[] = [];
    world.table.onLeases = () => {
      const marked = firstAddresses.filter((address) => world.table.isMarked(address));
      if (marked.length === firstAddresses.length) resolve(marked.find((address) => !before.includes(address)));
      before = marked;
    };
  });
  const isOver = Promise.all(firstAddresses.map((address) => withdraw(world, address, LONG_MIN, chance)));
  const undone = await clock.within(UNDO_LOST_MS, last);
  world.table.lostWrites = { of: 'deregister', key: 'masterleases', untilMs: clock.nowMs + UNDO_LOST_MS };
  for (const address of firstAddresses.filter((each) => each !== undone)) {
    await clock.wait(chance.between(50, 700));
    await undo(world, address);
  }
  await isOver;
  world.table.haltOfDrainsMs = 0;
  world.table.onLeases = undefined;
  await undo(world, undone ?? firstAddresses[0]);
}

/** Stops the functions for some time. An API server may be down when they run again. */
export async function outage(world: World, chance: Chance): Promise<void> {
  if (world.functions.areStopped) return;
  world.functions.stops++;
  await world.clock.wait(15_000 + chance.pick(30_000));
  const died = chance.once(3) ? undefined : serverDies(world, chance, chance.pick(60_000));
  world.functions.stops--;
  await died;
}
