import {
  type EndpointAddress,
  type EndpointPort,
  type EndpointSubset,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SKIP_MIRROR_LABEL,
  samePort,
} from './objects.ts';
import { repackSubsets } from './repack-subsets.ts';

/** How a reconciler publishes addresses. */
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

/** Applies the master-count reconciler of each server in order ({@link addMaster}), until a whole sequence changes nothing. */
export function addMasters(
  current: EndpointsObject | undefined,
  live: readonly string[],
  rules: MasterRules,
): EndpointsObject | undefined {
  let endpoints = current;
  for (let sequence = 0; sequence < MOST_SEQUENCES; sequence++) {
    const before = endpoints;
    for (const address of live) endpoints = addMaster(endpoints, address, rules);
    if (endpoints === before) break;
  }
  return endpoints;
}
