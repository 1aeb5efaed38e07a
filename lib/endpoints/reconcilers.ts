import { countBefore } from '../allocator/network.ts';
import {
  type EndpointAddress,
  type EndpointPort,
  type EndpointSubset,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SKIP_MIRROR_LABEL,
  samePort,
} from '../cluster/published-objects.ts';
import { addressKey, repackSubsets } from '../cluster/repack-subsets.ts';

export interface PublishingRules {
  readonly ports: readonly EndpointPort[];
  /** If `false`, wrong ports alone do not cause a write. */
  readonly reconcilePorts: boolean;
}

/** Returns the Endpoints as upstream's lease reconciler writes them (`doReconcile`). Correct Endpoints are returned unchanged. */
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

/** Returns the Endpoints with the label `skip-mirror`. Returns the same object if it has the label already. */
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

function withPorts(subsets: readonly EndpointSubset[], ports: readonly EndpointPort[]): EndpointSubset[] {
  return subsets.map((subset, position) => (position === 0 ? { ...subset, ports } : subset));
}

/** Compares addresses in any order. A duplicate address counts as a difference. */
function sameAddresses({ addresses = [] }: EndpointSubset, live: readonly string[]): boolean {
  const found = new Set(addresses.map(({ ip }) => ip));
  return addresses.length === live.length && found.size === live.length && live.every((ip) => found.has(ip));
}

export interface MasterRules extends PublishingRules {
  readonly masterCount: number;
}

/**
 * Adds one address, as upstream's master-count reconciler does (`pkg/controlplane/reconcilers/instancecount.go`). For example, if
 * 10.0.0.1, 10.0.0.2 and 10.0.0.9 are published and the count is three, the new address 10.0.0.3 replaces 10.0.0.9. If `current`
 * is correct, returns the same object.
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

/** Removes addresses from the first subset, as upstream's `RemoveEndpoints` does; returns `undefined` without a subset. */
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

/** Removes addresses after `own`, cyclically, until `masterCount` remain. As in upstream, the index of `own` is not updated. */
function trimmed(addresses: readonly EndpointAddress[], own: string, masterCount: number): EndpointAddress[] {
  const kept = [...addresses];
  const position = kept.findIndex(({ ip }) => ip === own);
  while (position >= 0 && kept.length > masterCount) kept.splice((position + 1) % kept.length, 1);
  return kept;
}

/**
 * The maximum number of times that {@link addMasters} adds all servers in order. If there are more servers than the master count,
 * the added servers displace each other, but the result does not change after the second time.
 */
const MOST_SEQUENCES = 3;

/**
 * Applies {@link addMaster} for each server in order, and repeats this sequence until it changes nothing. After the first
 * repacking, each further address is inserted at its place in the order, without repacking again.
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
  [first, ...others]: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  if (first === undefined) return current;
  const endpoints = addMaster(current, first, rules);
  const present = new Set(onlySubset(endpoints)?.addresses?.map(({ ip }) => ip));
  const at = others.findIndex((address) => !present.has(address));
  const next = others[at];
  if (next === undefined) return endpoints;
  return withRest(addMaster(endpoints, next, rules), others.slice(at + 1), rules.masterCount);
}

/** Adds servers to a subset that is repacked and has the right ports. The result is the same as with {@link addMaster}. */
function withRest(endpoints: EndpointsObject, live: readonly string[], masterCount: number): EndpointsObject {
  const [only, ...others] = endpoints.subsets ?? [];
  const addresses = [...(only?.addresses ?? [])];
  const present = new Set(addresses.map(({ ip }) => ip));
  for (const ip of live) {
    if (present.has(ip)) continue;
    const key = addressKey({ ip });
    const at = countBefore(addresses, (other) => addressKey(other) < key);
    addresses.splice(at, 0, { ip });
    present.add(ip);
    if (addresses.length <= masterCount) continue;
    // One address is too many: remove the address after the added one, or the first address if the added one is the last.
    const next = (at + 1) % addresses.length;
    const [removed] = addresses.splice(next, 1);
    const isLeft = [addresses[next - 1], addresses[next]].some((other) => other?.ip === removed?.ip);
    if (removed !== undefined && !isLeft) present.delete(removed.ip);
  }
  return { ...endpoints, subsets: [{ ...only, addresses }, ...others] };
}
