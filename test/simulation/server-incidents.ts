import type { Chance } from './clock.ts';
import { type Endpoints, endpointAddresses, isIPv6, sliceAddresses } from './control-plane.ts';
import { FOREIGN } from './endpoint-truth.ts';
import { apply, withdraw } from './operators.ts';
import { ADDRESSES } from './servers.ts';
import type { World } from './world.ts';

/** From a change of the secret to that of the servers: no pass has read the secret before it, and connects after it. */
const ROLLED_OUT_MS = 15_000;
const WAITED_FOR_MS = 30_000;
/** A server that is down is not published any more. */
const REMOVED_AFTER_MS = 35_000;
/** The time to a tick, and its own. */
const UNWRITTEN_MS = 14_000;
/** A write that is late arrives within this. */
const LATEST_MS = 18_000;
/** A kubeconfig of a minute ago, by two clocks. */
const KNOWN_MS = 65_000;

/** No API server is reached, then one, then all. */
export async function networkOutage({ servers, clock }: World, chance: Chance): Promise<void> {
  servers.cutAll(true);
  await clock.wait(12_000 + chance.pick(40_000));
  servers.cut(chance.oneOf(ADDRESSES), false);
  await clock.wait(chance.pick(9_000));
  servers.cutAll(false);
}

/** An API server dies. Before its lease has ended, no server answers probes any more, and the balancer does. */
export async function probeOutage(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  const died = serverDies(world, chance, 60_000);
  await clock.wait(12_000 + chance.pick(20_000));
  servers.cutProbes(true);
  await clock.wait(10_000 + chance.pick(30_000));
  servers.cutProbes(false);
  await died;
}

/** One API server is not reached for a moment. */
export async function blip({ servers, clock, firstAddresses }: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(firstAddresses);
  servers.cut(address, true);
  await clock.wait(200 + chance.pick(chance.oneOf([3_000, 14_000])));
  servers.cut(address, false);
}

export async function serverDies(
  world: World,
  chance: Chance,
  longMs = chance.pick(chance.oneOf([9_000, 60_000])),
): Promise<void> {
  const { servers, clock } = world;
  const address = oneExpected(world, chance);
  servers.set(address, { state: chance.oneOf(['down', 'silent', 'notReady']) });
  await clock.wait(chance.oneOf([3_000, 5_000]) + longMs);
  start(world, address);
}

function oneExpected(world: World, chance: Chance): string {
  const expected = world.expected().filter((address) => world.servers.all.has(address));
  return expected[chance.pick(expected.length)] ?? chance.oneOf(ADDRESSES);
}

/** It says so, ends, and comes back. */
export async function serverRestarts(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  const address = oneExpected(world, chance);
  servers.set(address, { state: 'shuttingDown' });
  await clock.wait(1_000 + chance.pick(15_000));
  servers.set(address, { state: 'down' });
  await clock.wait(1_000 + chance.pick(30_000));
  start(world, address);
}

/**
 * An API server that was not started with `--endpoint-reconciler-type=none` adds its own address to the Endpoints; the next
 * tick may not come to write its lease.
 */
export function start(world: World, address: string): void {
  const { servers, firstAddresses } = world;
  servers.set(address, { state: 'up' });
  const { plane } = servers.server(address);
  const endpoints = plane.find<Endpoints>('endpoints', 'default', 'kubernetes');
  const [subset] = endpoints?.subsets ?? [];
  if (!world.has('ownReconcilers') || !firstAddresses.includes(address) || isIPv6(address)) return;
  if (subset === undefined) return;
  const { nowMs } = world.clock;
  // One answer is forgotten, and not the next.
  const isNext = (world.lostWrites?.untilMs ?? 0) + UNWRITTEN_MS > nowMs;
  if (!isNext) world.lostWrites = { of: 'endpoints', key: 'masterleases', untilMs: nowMs + UNWRITTEN_MS };
  const addresses = [...new Set([...endpointAddresses(endpoints), address])].sort().map((ip) => ({ ip }));
  plane.place('endpoints', { ...endpoints, subsets: [{ ...subset, addresses }] } as Endpoints, address);
}

export async function agentDies(world: World, chance: Chance): Promise<void> {
  const address = chance.oneOf(world.firstAddresses);
  world.deadAgents.add(address);
  await world.clock.wait(10_000 + chance.pick(60_000));
  world.deadAgents.delete(address);
}

/** A write that adds an address to the Endpoints or their slice, or creates them, is late, and the address is drained meanwhile. */
export async function lateAddition(world: World, chance: Chance): Promise<void> {
  const { clock, endpoints, servers } = world;
  if (world.delayOfWrite !== undefined) return;
  world.delayOfWrite = () => undefined;
  const removed = chance.oneOf(world.firstAddresses);
  if (chance.once(2)) {
    servers.set(removed, { state: 'down' });
    await clock.wait(REMOVED_AFTER_MS);
    start(world, removed);
  } else await endpointsDeleted(world, chance);
  const late = chance.oneOf(['endpoints', 'endpointslices']);
  const added = await new Promise<string | undefined>((resolve) => {
    world.delayOfWrite = (kind, body) => {
      const object = JSON.parse(body);
      const [address] = [...endpointAddresses(object), ...sliceAddresses(object)].filter(
        (each) => !endpoints.publishedIn(kind, object.metadata.name).includes(each),
      );
      if (address === undefined || kind !== late) return undefined;
      world.delayOfWrite = () => undefined;
      world.note(`a write of ${kind} with ${address} is late`);
      resolve(address);
      return chance.between(3_000, LATEST_MS);
    };
    clock.in(WAITED_FOR_MS, () => resolve(undefined));
  });
  await clock.wait(chance.pick(2_000));
  if (added !== undefined) await withdraw(world, added, 1, chance);
  await clock.wait(LATEST_MS);
  world.delayOfWrite = undefined;
}

/** Another client deletes the Endpoints, perhaps with their slice: the next pass creates them. */
export async function endpointsDeleted({ servers, endpoints }: World, chance: Chance): Promise<void> {
  // A creation that is late may come now, with what was withdrawn meanwhile, and the next pass removes it.
  for (const address of servers.all.keys()) endpoints.mayReturn(address);
  servers.plane.remove('endpoints', 'default', 'kubernetes');
  if (!chance.once(4)) servers.plane.remove('endpointslices', 'default', 'kubernetes');
  if (chance.once(2)) servers.plane.remove('endpointslices', 'default', 'kubernetes-ipv6');
}

/** Another client undoes what is published, two or three times: afterwards writes that only contest are retried with backoff. */
export async function overwrite({ servers, clock }: World, chance: Chance): Promise<void> {
  for (let left = chance.between(2, 3); left > 0; left--) {
    const current = servers.plane.find<Endpoints>('endpoints', 'default', 'kubernetes');
    const [subset] = current?.subsets ?? [];
    const addresses = subset?.addresses?.slice(0, 1);
    const subsets = [{ ...subset, addresses }];
    if (addresses !== undefined) servers.plane.place('endpoints', { ...current, subsets } as never);
    await clock.wait(chance.between(11_000, 14_000));
  }
}

/** No name is resolved for a while. */
export async function namesFail({ servers, clock }: World, chance: Chance): Promise<void> {
  servers.areNamesLost = true;
  await clock.wait(chance.between(10_000, 50_000));
  servers.areNamesLost = false;
}

/** Another client makes a slice of the Service; perhaps it deletes the others, or no server is reached now. */
export async function foreignSlice(world: World, chance: Chance): Promise<void> {
  const { servers, firstAddresses } = world;
  if (servers.plane.slices().some(({ metadata }) => metadata.name.startsWith(FOREIGN))) return;
  const [address] = firstAddresses;
  const labels = { 'kubernetes.io/service-name': 'kubernetes' };
  const metadata = { namespace: 'default', name: `${FOREIGN}${chance.pick(1_000)}`, labels };
  const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4' };
  if (chance.once(2)) await endpointsDeleted(world, chance);
  servers.plane.place('endpointslices', { ...slice, endpoints: [{ addresses: [address] }], ports: [] } as never);
  if (chance.once(2)) await serverDies(world, chance);
}

/** An API server is replaced: another address in the spec. */
export async function replaceServer(world: World, chance: Chance): Promise<void> {
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

export async function recordChanges(world: World, chance: Chance): Promise<void> {
  if (!world.has('dns')) return;
  const named = world.spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  const spare = ADDRESSES.filter((address) => !named.includes(address));
  const [address = ADDRESSES[3]] = [spare[chance.pick(spare.length)]];
  for (const record of world.servers.records) world.servers.formerRecords.add(record);
  world.servers.records = [address];
  world.expectAddresses();
}

/** The secret gets the next token, and the next CA beside the old one; then each server gets its certificate of that CA. */
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
  // The one that the balancer prefers is the last: until then calls work with the old kubeconfig, and probes of the others do not.
  const longMs = chance.oneOf([500, 8_000, 40_000, 40_000]);
  for (const server of [...servers.all.values()].reverse()) {
    server.ca = ca;
    server.tokens.delete(oldToken);
    world.note(`${server.address} has a certificate of ${ca}`);
    const isExpected = world.expected().includes(server.address);
    await clock.wait(isExpected ? chance.between(longMs / 2, longMs) : chance.pick(500));
  }
  await clock.wait(ROLLED_OUT_MS);
  servers.renew({ ca, token });
  servers.isRotating = false;
}

/** The control plane moves to other servers; the old ones still answer, from an etcd that is written no more. */
export async function moveControlPlane(world: World, chance: Chance): Promise<void> {
  const { servers, clock } = world;
  if (world.has('oneServerKubeconfig') || world.has('dns') || world.isAway || servers.hasMoved) return;
  servers.hasMoved = true;
  const named = world.spec.apiServers.flatMap((server) => ('address' in server ? server.address : []));
  const others = ADDRESSES.filter((address) => !named.includes(address));
  world.note('the control plane moves');
  servers.move(others);
  // A deregistration that is under way, or knows the kubeconfig of a minute ago, may change the old one.
  for (const address of ADDRESSES) world.endpoints.mayReturn(address, clock.nowMs + KNOWN_MS);
  const apiServers = others.map(
    (address) => ({ address, kind: 'server', probe: { path: '/readyz', authenticate: false } }) as const,
  );
  await apply(world, { apiServers });
  await clock.wait(10_000 + chance.pick(30_000));
}
