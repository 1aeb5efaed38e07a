import { isIPv6 } from './control-plane.ts';
import { FOREIGN } from './endpoint-truth.ts';
import { STORE_FAILS_MS } from './functions.ts';
import { LONGEST_LIST_MS } from './network.ts';
import { INTERVAL_MS } from './settings.ts';
import { RANGE_KEYS } from './stored-items.ts';
import type { Violation, World } from './world.ts';

const INTERVALS_TO_CONVERGE = 4;
/** Endpoints converge sooner than ranges, in which a leak needs three strikes. */
const INTERVALS_OF_ENDPOINTS = 3;
const LOOK_EVERY_MS = 15_000;
const LOOKS = 2;
/** An IPAddress without a Service is deleted only after a minute. */
const RECORDS_MS = 60_000;
const FAMILIES = ['IPv4', 'IPv6'] as const;

/** Waits until the state of the world is correct, and reports what is still wrong when the time is over. */
export async function untilConverged(world: World): Promise<void> {
  const { clock } = world;
  const lateMs = (world.has('slowReads') ? LONGEST_LIST_MS : 0) + (world.has('storeFails') ? STORE_FAILS_MS : 0);
  const recordsMs = world.stock === undefined ? 0 : RECORDS_MS + Math.abs(world.stock.skewMs);
  const longest = world.has('ranges') || world.has('addresses') ? INTERVALS_TO_CONVERGE : INTERVALS_OF_ENDPOINTS;
  const intervals = startAgain(world.servers) ? 2 * INTERVALS_TO_CONVERGE : longest;
  const endsAtMs = clock.nowMs + intervals * INTERVAL_MS + lateMs + recordsMs;
  for (let clean = 0; clean < LOOKS; ) {
    await clock.wait(LOOK_EVERY_MS);
    const wrong = wrongIn(world);
    // After a rotation or a move, strikes start from zero, so errors can appear late.
    const isEarly = startAgain(world.servers) && clock.nowMs < endsAtMs - INTERVALS_TO_CONVERGE * INTERVAL_MS;
    clean = wrong.length === 0 && !isEarly ? clean + 1 : 0;
    if (clock.nowMs < endsAtMs) continue;
    for (const { kind, message } of wrong) world.violate(kind, message);
    return;
  }
}

/** Returns whether strikes started from zero: after a rotation or a move, the kubeconfig is that of another control plane. */
function startAgain({ hasRotated, hasMoved }: World['servers']): boolean {
  return hasRotated || hasMoved;
}

function wrongIn(world: World): Violation[] {
  const { servers } = world;
  // The repairs use only the API server in their kubeconfig.
  const canRepair = servers.reached(new URL(servers.kubeconfig.server).hostname) !== undefined;
  return [
    ...(world.has('ranges') && canRepair ? [...leaked(world), ...free(world)] : []),
    ...(canRepair ? (world.stock?.wrong() ?? []) : []),
    // Endpoints are not checked after a move, because for hours passes use the kubeconfig that they have read before, as long as
    // the former control plane answers.
    ...(world.has('endpoints') && !servers.hasMoved ? misplaced(world) : []),
  ];
}

function leaked(world: World): Violation[] {
  const { servers, clock } = world;
  const freedLateMs = (startAgain(servers) ? INTERVALS_TO_CONVERGE : 2) * INTERVAL_MS;
  const owned = ownedIn(world);
  return keysOf(world).flatMap((key) => {
    const { taken, holds } = world.table.stored(key);
    // If a caller does not know that its item was allocated, a pass frees the item only after the end of the hold.
    const isHeld = (item: string) => (holds.get(item)?.untilMs ?? 0) > clock.nowMs - freedLateMs;
    return [...taken]
      .filter((item) => !owned.has(item) && !isHeld(item))
      .map((item) => ({ kind: 'leaked', message: `${item} is taken at the end, and nothing has it` }));
  });
}

function free(world: World): Violation[] {
  const taken = new Set(keysOf(world).flatMap((key) => [...world.table.stored(key).taken]));
  return [...ownedIn(world)]
    .filter((item) => !taken.has(item) && world.cluster.isInSpec(item))
    .map((item) => ({ kind: 'freed', message: `${item} is free at the end, and has an owner` }));
}

function ownedIn({ ranges }: World): Set<string> {
  return new Set(['10.0.0.1', ...ranges.owned()]);
}

function keysOf(world: World): readonly string[] {
  return RANGE_KEYS.filter((key) => key !== 'ranges/servicenodeports' || world.has('nodePorts'));
}

function misplaced(world: World): Violation[] {
  const { endpoints, servers } = world;
  const isCertain = (address: string) => !endpoints.mayBeWithdrawn(address);
  const good = world.cluster.expected().filter((address) => servers.isGood(address) && !endpoints.isWithdrawn(address));
  const wrong = FAMILIES.flatMap((family) => {
    const expected = good.filter((address) => isCertain(address) && isIPv6(address) === (family === 'IPv6')).sort();
    // The functions never remove the last address.
    if (expected.length === 0) return [];
    const published = endpoints.publishedOf(family).map((each) => each.filter(isCertain).join(' '));
    if (published.every((each) => each === expected.join(' '))) return [];
    const message = `published at the end: ${published.join(', and ')}; expected: ${expected.join(' ')}`;
    return [{ kind: 'notConverged', message }];
  });
  const foreign = servers.plane.slices().filter(({ metadata }) => metadata.name.startsWith(FOREIGN));
  // The functions delete no slice while the family has no live address.
  const isLive = (type: string) => good.some((each) => isCertain(each) && isIPv6(each) === (type === 'IPv6'));
  const pruned = world.has('prune') ? foreign.filter(({ addressType }) => isLive(addressType)) : [];
  return [...wrong, ...pruned.map(({ metadata }) => ({ kind: 'notConverged', message: `${metadata.name} is left` }))];
}
