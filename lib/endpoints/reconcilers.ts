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

/** To the letter the original's (`pkg/controlplane/reconcilers/lease.go`). */
export const REFUSAL =
  'no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes Service';

/**
 * What to do to the Endpoints. `keep`: they are right, only the EndpointSlice is still to be ensured; `nothing`: not
 * even that.
 */
export type EndpointsDecision =
  | { readonly outcome: 'nothing' }
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'keep' | 'create' | 'update'; readonly endpoints: EndpointsObject };

export interface EndpointsObservation {
  readonly current: EndpointsObject | undefined;
  /** Addresses whose lease is held, in byte order. */
  readonly live: readonly string[];
  readonly ports: readonly EndpointPort[];
  /** `false`: wrong ports alone are left as they are. */
  readonly reconcilePorts: boolean;
  /** An address stopped for good: the last one may go, and missing Endpoints stay missing. */
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

/** The same object when it carries the label already. */
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

/** The first subset's ports replaced. */
function withPorts(subsets: readonly EndpointSubset[], ports: readonly EndpointPort[]): EndpointSubset[] {
  return subsets.map((subset, position) => (position === 0 ? { ...subset, ports } : subset));
}

/** Order says nothing; an address that is there twice makes them differ. */
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

/** `ReconcileEndpoints` of `pkg/controlplane/reconcilers/instancecount.go`: one address puts itself in. */
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

/** `RemoveEndpoints`: addresses take themselves out of the first subset. It never refuses. */
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

/** While there are too many, the one after ours goes; the first, when ours is last. Ours stays where it was counted. */
function trimmed(addresses: readonly EndpointAddress[], own: string, masterCount: number): EndpointAddress[] {
  const kept = [...addresses];
  const position = kept.findIndex(({ ip }) => ip === own);
  while (position >= 0 && kept.length > masterCount) kept.splice((position + 1) % kept.length, 1);
  return kept;
}
