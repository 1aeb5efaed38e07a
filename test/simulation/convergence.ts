import { isIPv6, itemsOf } from './control-plane.ts';
import { FOREIGN } from './endpoint-truth.ts';
import { STORE_FAILS_MS } from './functions.ts';
import { LONGEST_LIST_MS } from './network.ts';
import { INTERVAL_MS } from './settings.ts';
import { RANGE_KEYS } from './stored-items.ts';
import type { Violation, World } from './world.ts';

const INTERVALS_TO_CONVERGE = 4;
/** Endpoints converge sooner than ranges, in which a leak needs three strikes. */
const INTERVALS_OF_ENDPOINTS = 3;
const LOOK_EVERY_MS = 8_000;
const LOOKS = 2;
/** The longest time for which requests that were sent before the end of the faults still change a range. */
const LAST_REQUESTS_MS = 20_000;
/** A Service of a stock cluster changes for two more minutes, and an IPAddress without a Service is deleted only after a minute. */
const RECORDS_MS = 180_000;
/** The ticks of a minute in which a cluster is not yet known to end its process share messages with that cluster. */
const MINUTE_MS = 60_000;
const FAMILIES = ['IPv4', 'IPv6'] as const;

/** Waits until the state of the world is correct, and reports what is still wrong when the time is over. */
export async function untilConverged(world: World): Promise<void> {
  const { clock } = world;
  const endsAtMs = clock.nowMs + longestMs(world);
  // After a rotation or a move, strikes start from zero, so leaks can appear late.
  const isLate = world.has('ranges') && startAgain(world.servers);
  const cleanFromMs = isLate ? endsAtMs - INTERVALS_TO_CONVERGE * INTERVAL_MS : clock.nowMs;
  for (let clean = 0; clean < LOOKS; ) {
    await clock.wait(LOOK_EVERY_MS);
    const wrong = wrongIn(world);
    clean = wrong.length === 0 && clock.nowMs >= cleanFromMs ? clean + 1 : 0;
    if (clock.nowMs < endsAtMs) continue;
    for (const { kind, message } of wrong) world.violate(kind, message);
    if (wrong.length > 0) return;
    break;
  }
  if (world.has('ranges') && !world.has('storeFails') && canRepair(world)) await world.people.createLast();
}

function longestMs(world: World): number {
  const { stock, servers } = world;
  const has = world.has.bind(world);
  const ofRanges = has('ranges') || has('addresses') ? INTERVALS_TO_CONVERGE : INTERVALS_OF_ENDPOINTS;
  const intervals = startAgain(servers) ? 2 * INTERVALS_TO_CONVERGE : ofRanges;
  // On a lossy path, a third of the passes get no answer.
  const lateMs = (has('slowReads') ? LONGEST_LIST_MS : 0) + (has('lossyPath') ? INTERVAL_MS : 0);
  const sharedMs = has('attacker') ? MINUTE_MS : 0;
  const failsMs = has('storeFails') ? STORE_FAILS_MS : 0;
  const recordsMs = stock === undefined ? 0 : RECORDS_MS + Math.abs(stock.skewMs);
  return intervals * INTERVAL_MS + LAST_REQUESTS_MS + lateMs + sharedMs + failsMs + recordsMs;
}

/** Returns whether strikes started from zero: after a rotation or a move, the kubeconfig is that of another control plane. */
function startAgain({ hasRotated, hasMoved }: World['servers']): boolean {
  return hasRotated || hasMoved;
}

/** Returns whether the repairs reach the API server in their kubeconfig. They use no other. */
function canRepair({ servers }: World): boolean {
  return servers.reached(new URL(servers.kubeconfig.server).hostname) !== undefined;
}

function wrongIn(world: World): Violation[] {
  const { servers } = world;
  const isRepaired = canRepair(world);
  return [
    ...(world.has('ranges') && isRepaired ? [...leaked(world), ...free(world)] : []),
    ...(isRepaired ? (world.stock?.wrong() ?? []) : []),
    // Endpoints are not checked after a move, because for hours passes use the kubeconfig that they have read before, as long as
    // the former control plane answers.
    ...(world.has('endpoints') && !servers.hasMoved ? misplaced(world) : []),
  ];
}

function leaked(world: World): Violation[] {
  const { servers, clock } = world;
  const freedLateMs = (startAgain(servers) ? INTERVALS_TO_CONVERGE : 2) * INTERVAL_MS;
  const ofFormer = servers.formerPlane?.services().flatMap(itemsOf) ?? [];
  const owned = new Set([...ownedIn(world), ...ofFormer]);
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
