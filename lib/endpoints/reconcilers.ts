import {
  type EndpointAddress,
  type EndpointPort,
  type EndpointSubset,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SKIP_MIRROR_LABEL,
  samePort,
} from './objects.ts';
import { addressKey, repackSubsets } from './repack-subsets.ts';

/** The rules by which a reconciler publishes addresses. */
export interface PublishingRules {
  readonly ports: readonly EndpointPort[];
  /** `false`: wrong ports alone cause no write. */
  readonly reconcilePorts: boolean;
}

/**
 * `doReconcile` of the original's lease reconciler.
 * @param live the addresses with an active lease, in byte order
 * @returns the same object if it is correct.
 */
export function leaseEndpoints(
  current: EndpointsObject | undefined,
  live: readonly string[],
  { ports, reconcilePorts }: PublishingRules,
): EndpointsObject {
  const labelled = withSkipMirror(current ?? emptyEndpoints());
  const only = onlySubset(labelled);
  const addressesCorrect = only !== undefined && sameAddresses(only, live);
  const portsCorrect = only !== undefined && (!reconcilePorts || samePorts(only.ports ?? [], ports));
  if (addressesCorrect && portsCorrect) return labelled;

  const base = only ?? { ports };
  const repacked = addressesCorrect ? [base] : repackSubsets([{ ...base, addresses: live.map((ip) => ({ ip })) }]);
  return { ...labelled, subsets: portsCorrect ? repacked : withPorts(repacked, ports) };
}

function emptyEndpoints(): EndpointsObject {
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...KUBERNETES_SERVICE }, subsets: [] };
}

/** Returns the Endpoints with the label; the same object if it has the label already. */
function withSkipMirror(endpoints: EndpointsObject): EndpointsObject {
  const { metadata } = endpoints;
  if (metadata.labels?.[SKIP_MIRROR_LABEL] === 'true') return endpoints;
  return { ...endpoints, metadata: { ...metadata, labels: { ...metadata.labels, [SKIP_MIRROR_LABEL]: 'true' } } };
}

export function onlySubset(endpoints: EndpointsObject): EndpointSubset | undefined {
  return endpoints.subsets?.length === 1 ? endpoints.subsets[0] : undefined;
}

function samePorts(found: readonly EndpointPort[], wanted: readonly EndpointPort[]): boolean {
  return (
    found.length === wanted.length &&
    wanted.every((port, position) => {
      const other = found[position];
      return other !== undefined && samePort(port, other);
    })
  );
}

/** Returns the subsets with the ports of the first one replaced. */
function withPorts(subsets: readonly EndpointSubset[], ports: readonly EndpointPort[]): EndpointSubset[] {
  return subsets.map((subset, position) => (position === 0 ? { ...subset, ports } : subset));
}

/** Compares without regard to order; a duplicate address is a difference. */
function sameAddresses({ addresses = [] }: EndpointSubset, live: readonly string[]): boolean {
  const found = new Set(addresses.map(({ ip }) => ip));
  return addresses.length === live.length && found.size === live.length && live.every((ip) => found.has(ip));
}

export interface MasterRules extends PublishingRules {
  readonly masterCount: number;
}

/**
 * `ReconcileEndpoints` of `pkg/controlplane/reconcilers/instancecount.go`: adds one address.
 * @returns the same object if it is correct.
 */
export function addMaster(
  current: EndpointsObject | undefined,
  address: string,
  { masterCount, ports, reconcilePorts }: MasterRules,
): EndpointsObject {
  const labelled = withSkipMirror(current ?? emptyEndpoints());
  const only = onlySubset(labelled);
  if (only === undefined) return { ...labelled, subsets: [{ addresses: [{ ip: address }], ports }] };
  const addresses = only.addresses ?? [];
  const addressCorrect = addresses.some(({ ip }) => ip === address) && addresses.length <= masterCount;
  const portsCorrect = !reconcilePorts || samePorts(only.ports ?? [], ports);
  if (addressCorrect && portsCorrect) return labelled;

  const populated = addressCorrect ? [only] : withAddress(only, address, masterCount);
  return { ...labelled, subsets: portsCorrect ? populated : withPorts(populated, ports) };
}

/**
 * `RemoveEndpoints`: removes addresses from the first subset, even the last one.
 * @returns `undefined` if there is no subset.
 */
export function removeMasters(
  current: EndpointsObject | undefined,
  isRemoved: Pick<ReadonlySet<string>, 'has'>,
): EndpointsObject | undefined {
  const [first, ...others] = current?.subsets ?? [];
  if (current === undefined || first === undefined) return undefined;
  const addresses = (first.addresses ?? []).filter(({ ip }) => !isRemoved.has(ip));
  return { ...current, subsets: repackSubsets([{ ...first, addresses }, ...others]) };
}

function withAddress(only: EndpointSubset, address: string, masterCount: number): EndpointSubset[] {
  const [first, ...others] = repackSubsets([{ ...only, addresses: [...(only.addresses ?? []), { ip: address }] }]);
  if (first === undefined) return others;
  return [{ ...first, addresses: trimmed(first.addresses ?? [], address, masterCount) }, ...others];
}

/** Removes the address after ours, or the first if ours is last, while there are too many. Our index is fixed, as in the original. */
function trimmed(addresses: readonly EndpointAddress[], own: string, masterCount: number): EndpointAddress[] {
  const kept = [...addresses];
  const position = kept.findIndex(({ ip }) => ip === own);
  while (position >= 0 && kept.length > masterCount) kept.splice((position + 1) % kept.length, 1);
  return kept;
}

/** With more servers than the master count, servers displace each other: the result is stable from the second sequence on. */
const MOST_SEQUENCES = 3;

/**
 * Applies the master-count reconciler of each server in order ({@link addMaster}), until a whole sequence changes nothing.
 * Once the subset is repacked, a server takes its place in the order of the addresses without repacking it again.
 */
export function addMasters(
  current: EndpointsObject | undefined,
  live: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  let endpoints = current;
  for (let sequence = 0; sequence < MOST_SEQUENCES; sequence++) {
    const before = endpoints;
    endpoints = addInOrder(endpoints, live, rules);
    if (endpoints === before) break;
  }
  return endpoints;
}

function addInOrder(
  current: EndpointsObject | undefined,
  live: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  let endpoints = current;
  let present = new Set<string>();
  let isRepacked = false;
  for (const [index, address] of live.entries()) {
    if (present.has(address)) continue;
    if (isRepacked) return endpoints && withRest(endpoints, live.slice(index), rules.masterCount);
    const before = (endpoints && onlySubset(endpoints))?.addresses ?? [];
    isRepacked = before.length > rules.masterCount || before.every(({ ip }) => ip !== address);
    endpoints = addMaster(endpoints, address, rules);
    present = new Set(endpoints && onlySubset(endpoints)?.addresses?.map(({ ip }) => ip));
  }
  return endpoints;
}

/** Adds the remaining servers as {@link addMaster} does, to a subset that is repacked and has the right ports. */
function withRest(endpoints: EndpointsObject, live: readonly string[], masterCount: number): EndpointsObject {
  const [only, ...others] = endpoints.subsets ?? [];
  const addresses = [...(only?.addresses ?? [])];
  const present = new Set(addresses.map(({ ip }) => ip));
  for (const ip of live) {
    if (present.has(ip)) continue;
    const at = placeOf({ ip }, addresses);
    addresses.splice(at, 0, { ip });
    present.add(ip);
    if (addresses.length <= masterCount) continue;
    // One address too many: the address after the added one is removed; the first, if the added one is last.
    const next = (at + 1) % addresses.length;
    const [removed] = addresses.splice(next, 1);
    const isLeft = [addresses[next - 1], addresses[next]].some((other) => other?.ip === removed?.ip);
    if (removed !== undefined && !isLeft) present.delete(removed.ip);
  }
  return { ...endpoints, subsets: [{ ...only, addresses }, ...others] };
}

/** Returns the index at which the address is inserted to keep the order of repacked addresses. */
function placeOf(address: EndpointAddress, addresses: readonly EndpointAddress[]): number {
  const key = addressKey(address);
  let [from, to] = [0, addresses.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const other = addresses[middle];
    if (other !== undefined && addressKey(other) < key) from = middle + 1;
    else to = middle;
  }
  return from;
}
