import {
  type EndpointsDecision,
  emptyEndpoints,
  onlySubset,
  samePorts,
  withPorts,
  withSkipMirror,
} from './lease-endpoints.ts';
import type { EndpointAddress, EndpointPort, EndpointSubset, EndpointsObject } from './objects.ts';
import { repackSubsets } from './repack-subsets.ts';

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

/** `RemoveEndpoints`: one address takes itself out of the first subset. It never refuses. */
export function removeMaster(current: EndpointsObject | undefined, address: string): EndpointsDecision {
  const [first, ...others] = current?.subsets ?? [];
  if (current === undefined || first === undefined) return { outcome: 'nothing' };
  const addresses = (first.addresses ?? []).filter(({ ip }) => ip !== address);
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
