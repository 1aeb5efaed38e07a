import type { RangeName } from '../../lib/allocate/request.ts';
import { noSecondaryRange, notSupported, type OpenRange } from '../../lib/allocate/request-context.ts';
import { canonicalAddress, formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { ipAlreadyAllocated, ipNotInRange } from '../../lib/allocator/ip-range.ts';
import { isUsableIn, type Network, rangeSize, usableOf } from '../../lib/allocator/network.ts';
import { type PickIndex, reservedAddresses } from '../../lib/allocator/range-allocator.ts';
import { isRefused, type Refusal, rangeIsFull, refused } from '../../lib/allocator/refusal.ts';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { listServiceCidrs } from '../../lib/kubernetes/service-cidrs.ts';
import { withholdWrites } from '../../lib/kubernetes/withhold-writes.ts';
import { addressOwners } from '../../lib/loops/end-holds.ts';
import type { HoldTerms } from '../../lib/range/hold.ts';
import { holdIn, ipAddressOfHold, MANAGED_BY_HOLDS, REQUEST_LABEL } from '../../lib/range/hold-ip-address.ts';
import {
  type Allocated,
  mayRelease,
  type Released,
  type ReleaseOptions,
  type Requested,
  valuesFirst,
  withFree,
} from '../../lib/range/operations.ts';
import type { ItemState } from '../../lib/range/range.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { eachOf } from '../../lib/util/async.ts';
import { defined } from '../../lib/util/values.ts';

const READS_AT_ONCE = 8;
/** The maximum number of holds of a cluster, because the pass that deletes expired ones lists all holds in one reply (2 MiB). */
const MOST_HOLDS = 1_000;

/** Returns the primary or secondary range of a cluster whose API servers allocate, or a refusal if there is no such range. */
export async function openServiceCidrs(
  kubernetes: ClusterPort,
  spec: Pick<ClusterSpec, 'name'>,
  range: RangeName,
  { pick, dryRun }: { readonly pick: PickIndex; readonly dryRun: boolean },
): Promise<OpenRange | Refusal> {
  const cidrs = await listServiceCidrs(kubernetes);
  if (cidrs === undefined) {
    throw new ClusterError('Forbidden', `ServiceCIDRs of ${spec.name} may not be listed. Apply deploy/rbac.yaml.`);
  }
  const [first] = cidrs.flatMap(({ networks }) => networks);
  if (first === undefined) {
    return notSupported(spec.name, 'its API servers have no ServiceCIDRs, which Kubernetes 1.33 introduced');
  }
  const isOfRange = ({ family }: Network) => (family === first.family) === (range === 'serviceips');
  const networksOf = (some: typeof cidrs) => some.flatMap(({ networks }) => networks).filter(isOfRange);
  // Includes ServiceCIDRs that are being deleted, because their addresses can still be released.
  const all = networksOf(cidrs);
  if (all.length === 0) return noSecondaryRange(spec.name, first.text);
  const port = dryRun ? withholdWrites(kubernetes, () => {}) : kubernetes;
  const heldBy = async (requestId: string) => {
    const objects = await port.list('IPAddress', undefined, `${REQUEST_LABEL}=${requestId}`);
    return objects.flatMap((object) => holdIn(object)?.items ?? []).filter((name) => !isRefused(itemIn(all, name)));
  };
  return {
    heldBy,
    allocate: async (requested, { hold } = {}) => {
      if (hold?.requestId === undefined) throw new TypeError('an address needs the hold of a request');
      const own = new Set(await heldBy(hold.requestId));
      const ready = networksOf(cidrs.filter((cidr) => cidr.ready));
      return holdAddresses(port, requested, { hold, own, ready, pick });
    },
    release: (items, options = {}) => releaseAddresses(port, items, all, options),
    lookUp: (items) =>
      eachOf(items, READS_AT_ONCE, async (value): Promise<ItemState | Refusal> => {
        const item = itemIn(all, value);
        if (isRefused(item)) return item;
        const object = await readAddress(port, item);
        const hold = object && holdIn(object);
        return { item, taken: object !== undefined, ...defined({ hold }) };
      }),
  };
}

interface Holding {
  readonly hold: HoldTerms;
  readonly own: Set<string>;
  readonly ready: readonly Network[];
  readonly pick: PickIndex;
}

/**
 * Holds the requested addresses. If an address is refused, the caller releases the addresses that are already held. Never holds
 * the address of a Service, even if the IPAddress is missing: the release of the hold would free the address.
 */
async function holdAddresses(
  kubernetes: ClusterPort,
  requested: readonly Requested[],
  { hold, own, ready, pick }: Holding,
): Promise<Allocated> {
  const taken = new Set(addressOwners(await listAllServices(kubernetes)).keys());
  let holds = 0;
  for await (const batch of kubernetes.ipAddresses()) {
    for (const { name, managedBy } of batch) {
      taken.add(name);
      if (managedBy === MANAGED_BY_HOLDS) holds += 1;
    }
  }
  if (holds - own.size + requested.length > MOST_HOLDS) {
    const message = `this cluster has ${holds} holds and room for ${MOST_HOLDS}: release some, let some end, or hold fewer items`;
    return refused('HoldsFull', message);
  }
  const candidates = freeAddresses(ready, (address) => taken.has(address), pick);
  const holdNext = async (): Promise<string | Refusal> => {
    const [before] = own;
    if (before !== undefined) {
      own.delete(before);
      return before;
    }
    for (let next = candidates.next(); !next.done; next = candidates.next()) {
      if (await createHeld(kubernetes, next.value, hold)) return next.value;
    }
    return rangeIsFull();
  };
  const holdValue = async (value: string): Promise<string | Refusal> => {
    const item = itemIn(ready, value);
    if (isRefused(item) || own.delete(item)) return item;
    return !taken.has(item) && (await createHeld(kubernetes, item, hold)) ? item : ipAlreadyAllocated();
  };
  const items: string[] = [];
  for (const index of valuesFirst(requested)) {
    const value = requested[index];
    const item = await (value === undefined ? holdNext() : holdValue(value));
    // The number of addresses that this request has held so far. If the range is full, no other addresses were free.
    const free = Object.keys(items).length;
    if (isRefused(item)) return { ...withFree(item, free, requested.length), index };
    taken.add(item);
    items[index] = item;
  }
  return { outcome: 'allocated', items };
}

/** Creates the IPAddress of a hold. Returns true also if an earlier attempt created the IPAddress and the reply was lost. */
async function createHeld(kubernetes: ClusterPort, item: string, hold: HoldTerms): Promise<boolean> {
  const result = await kubernetes.create(ipAddressOfHold(item, hold));
  if (result.outcome === 'created' || result.outcome === 'withheld') return true;
  if (result.outcome !== 'alreadyExists') {
    throw new ClusterError('Rejected', `IPAddress ${item} was not created: ${result.message}`);
  }
  const object = await readAddress(kubernetes, item);
  return object !== undefined && holdIn(object)?.requestId === hold.requestId;
}

/** Releases only held addresses. While the IPAddress of a hold exists, no API server allocates that address. */
async function releaseAddresses(
  kubernetes: ClusterPort,
  items: readonly string[],
  networks: readonly Network[],
  { checkTime, ...options }: ReleaseOptions,
): Promise<Released> {
  let owners: ReadonlyMap<string, string> | undefined;
  const releaseOne = async (item: string): Promise<Omit<Released[number], 'item'>> => {
    const object = await readAddress(kubernetes, item);
    if (object === undefined) return { outcome: 'free' };
    const hold = holdIn(object);
    if (hold === undefined || !mayRelease(hold, item, options)) return { outcome: 'kept' };
    owners ??= addressOwners(await listAllServices(kubernetes));
    const owner = owners.get(item);
    if (owner !== undefined) {
      const message = `Service ${owner} has the address: the hold stays until the repair of IPAddresses replaces it`;
      return { outcome: 'kept', refusal: refused('NotHeld', message) };
    }
    checkTime?.();
    const result = await kubernetes.delete(object);
    if (result === 'conflict') return { outcome: 'kept' };
    return { outcome: result === 'notFound' ? 'free' : 'released' };
  };
  return Array.fromAsync(items, async (value): Promise<Released[number]> => {
    const item = itemIn(networks, value);
    return isRefused(item) ? { item: value, outcome: 'notInRange' } : { item, ...(await releaseOne(item)) };
  });
}

function readAddress(kubernetes: ClusterPort, name: string): Promise<KubernetesObject | undefined> {
  return kubernetes.get({ kind: 'IPAddress', name });
}

function itemIn(networks: readonly Network[], value: string): string | Refusal {
  const item = canonicalAddress(value);
  const address = item === undefined ? undefined : parseAddress(item);
  if (item !== undefined && address && networks.some((network) => isUsableIn(network, address))) return item;
  return ipNotInRange(value, networks.map(({ text }) => text).join(', '));
}

/** The maximum number of addresses among which a random start is chosen, because `randomInt` accepts only limits below 2^48. */
const MOST_STARTS = 2n ** 47n;

/** Yields free addresses. Static bands come first, because API servers use them last. Each band begins at a random address. */
export function* freeAddresses(
  networks: readonly Network[],
  isTaken: (address: string) => boolean,
  pick: PickIndex,
): Generator<string> {
  for (const isStatic of [true, false]) {
    for (const network of networks) {
      const { first, last } = usableOf(network);
      const reserved = BigInt(reservedAddresses(Number(rangeSize(network))));
      const band = isStatic
        ? { from: first, size: reserved }
        : { from: first + reserved, size: last - first + 1n - reserved };
      for (const value of fromRandomStart(band, pick)) {
        const address = formatAddress({ family: network.family, value });
        if (!isTaken(address)) yield address;
      }
    }
  }
}

function* fromRandomStart({ from, size }: { from: bigint; size: bigint }, pick: PickIndex): Generator<bigint> {
  if (size <= 0n) return;
  const start = BigInt(pick(Number(size < MOST_STARTS ? size : MOST_STARTS)));
  for (let step = 0n; step < size; step += 1n) yield from + ((start + step) % size);
}
