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

/** The exact message of the original (`pkg/controlplane/reconcilers/lease.go`). */
export const REFUSAL =
  'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service';

/**
 * The write of the Endpoints. `keep`: they are correct, and only the EndpointSlice is checked; `nothing`: the slice is
 * not checked either.
 */
export type EndpointsDecision =
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'keep' | 'create' | 'update'; readonly endpoints: EndpointsObject };

export interface EndpointsObservation {
  readonly current: EndpointsObject | undefined;
  /** The addresses with an active lease, in byte order. */
  readonly live: readonly string[];
  readonly ports: readonly EndpointPort[];
  /** `false`: wrong ports alone cause no write. */
  readonly reconcilePorts: boolean;
  /** True when an address is removed: it may be the last one, and missing Endpoints are not created. */
  readonly stopped: boolean;
}

/** `doReconcile` of the original's lease reconciler. */
export function leaseEndpoints({
  current,
  live,
  ports,
  reconcilePorts,
  stopped,
}: EndpointsObservation): EndpointsDecision {
  if (current === undefined && stopped) return { outcome: 'nothing' };
  if (!stopped && live.length === 0) return { outcome: 'refused' };

  const labelled = withSkipMirror(current ?? emptyEndpoints());
  const only = onlySubset(labelled);
  const addressesCorrect = only !== undefined && sameAddresses(only, live);
  const portsCorrect = only !== undefined && (!reconcilePorts || samePorts(only.ports ?? [], ports));
  if (labelled === current && addressesCorrect && portsCorrect) return { outcome: 'keep', endpoints: current };

  const base = only ?? { ports };
  const repacked = addressesCorrect ? [base] : repackSubsets([{ ...base, addresses: live.map((ip) => ({ ip })) }]);
  const subsets = portsCorrect ? repacked : withPorts(repacked, ports);
  return { outcome: current === undefined ? 'create' : 'update', endpoints: { ...labelled, subsets } };
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

export interface MasterCountObservation {
  readonly current: EndpointsObject | undefined;
  readonly address: string;
  readonly masterCount: number;
  readonly ports: readonly EndpointPort[];
  readonly reconcilePorts: boolean;
}

/** `ReconcileEndpoints` of `pkg/controlplane/reconcilers/instancecount.go`: adds one address. */
export function addMaster(observation: MasterCountObservation): EndpointsDecision {
  const { current, address, masterCount, ports, reconcilePorts } = observation;
  const labelled = withSkipMirror(current ?? emptyEndpoints());
  const remade: EndpointsObject = { ...labelled, subsets: [{ addresses: [{ ip: address }], ports }] };
  if (current === undefined) return { outcome: 'create', endpoints: remade };

  const only = onlySubset(labelled);
  if (only === undefined) return { outcome: 'update', endpoints: remade };
  const addresses = only.addresses ?? [];
  const addressCorrect = addresses.some(({ ip }) => ip === address) && addresses.length <= masterCount;
  const portsCorrect = !reconcilePorts || samePorts(only.ports ?? [], ports);
  if (labelled === current && addressCorrect && portsCorrect) return { outcome: 'keep', endpoints: current };

  const populated = addressCorrect ? [only] : withAddress(only, address, masterCount);
  const subsets = portsCorrect ? populated : withPorts(populated, ports);
  return { outcome: 'update', endpoints: { ...labelled, subsets } };
}

/** `RemoveEndpoints`: removes addresses from the first subset, even the last one. */
export function removeMasters(
  current: EndpointsObject | undefined,
  isRemoved: Pick<ReadonlySet<string>, 'has'>,
): EndpointsDecision {
  const [first, ...others] = current?.subsets ?? [];
  if (current === undefined || first === undefined) return { outcome: 'nothing' };
  const addresses = (first.addresses ?? []).filter(({ ip }) => !isRemoved.has(ip));
  const subsets = repackSubsets([{ ...first, addresses }, ...others]);
  return { outcome: 'update', endpoints: { ...current, subsets } };
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
