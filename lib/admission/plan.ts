import type { IPFamily } from '../allocator/ip-address.ts';
import { mayBeAccepted } from './accepted.ts';
import { asRead, completeNew, completeUpdate } from './complete-spec.ts';
import { familiesOf, keepsPreferredStacks } from './ip-families.ts';
import { healthCheckPort, newNodePorts, updatedNodePorts, type WantedPort } from './node-ports.ts';
import { hasClusterIP, isHeadless, type ServiceSpec } from './service.ts';

/** What a Service lacks, and where it goes. Both lists empty: nothing is to be taken for it. */
export interface Plan {
  /** `spec.clusterIPs` as it will be, an empty text where any address will do. */
  readonly clusterIPs: readonly string[];
  readonly addresses: readonly WantedAddress[];
  readonly ports: readonly WantedPort[];
  /** What it has, or asks for by name: nothing else of it may be the same. */
  readonly named: { readonly addresses: readonly string[]; readonly ports: readonly number[] };
}

export interface WantedAddress {
  /** Its place in `clusterIPs`. */
  readonly index: number;
  readonly family: IPFamily;
  /** As it was written. Absent: any. */
  readonly value?: string;
}

const NOTHING: Plan = { clusterIPs: [], addresses: [], ports: [], named: { addresses: [], ports: [] } };

/**
 * What the registry would allocate for a Service (`pkg/registry/core/service/storage/alloc.go`). What it would refuse
 * whoever allocates has no plan: it is left to refuse it, in its own words. `before` is the old object of an update,
 * `configured` the families of the cluster's ranges, the primary first.
 */
export function planOf(sent: ServiceSpec, stored: ServiceSpec | undefined, configured: readonly IPFamily[]): Plan {
  const before = stored && asRead(stored);
  const after = before === undefined ? completeNew(sent) : completeUpdate(sent, before);
  if (!hasClusterIP(after) || isHeadless(after) || !mayBeAccepted(after)) return NOTHING;
  const addresses = wantedAddresses(after, before, configured);
  const ports = before === undefined ? newNodePorts(after) : updatedNodePorts(after, before);
  if (addresses === undefined || ports === undefined) return NOTHING;
  const allPorts = [...ports, ...healthCheckPort(after, before)];
  return {
    ...addresses,
    ports: allPorts,
    named: {
      addresses: [...after.clusterIPs, ...(before?.clusterIPs ?? [])],
      ports: [after, before]
        .flatMap((spec) => spec?.ports.map(({ nodePort }) => nodePort) ?? [])
        .concat(after.healthCheckNodePort, before?.healthCheckNodePort ?? 0),
    },
  };
}

export function isEmpty({ addresses, ports }: Plan): boolean {
  return addresses.length === 0 && ports.length === 0;
}

function wantedAddresses(
  after: ServiceSpec,
  before: ServiceSpec | undefined,
  configured: readonly IPFamily[],
): Pick<Plan, 'clusterIPs' | 'addresses'> | undefined {
  const decided = familiesOf(after, before, configured);
  if (decided === undefined) return undefined;
  const { families } = decided;
  const clusterIPs = families.map((_, index) => decided.clusterIPs[index] ?? '');
  const wanted = families.map((family, index): WantedAddress => {
    const value = clusterIPs[index];
    return { index, family, ...(value !== undefined && value !== '' && { value }) };
  });
  if (before === undefined || !hasClusterIP(before)) return { clusterIPs, addresses: wanted };
  const isUpgrade =
    !isHeadless(before) &&
    before.ipFamilies.length === 1 &&
    families.length === 2 &&
    !keepsPreferredStacks(after, before);
  return { clusterIPs, addresses: isUpgrade ? wanted.slice(1) : [] };
}
