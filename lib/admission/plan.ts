import { isDeepStrictEqual } from 'node:util';
import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
import {
  asRead,
  completeNew,
  completeUpdate,
  getsHealthCheckPort,
  getsNodePorts,
  HEADLESS,
  hasClusterIP,
  isHeadless,
  mayHaveNodePorts,
  NAME,
  numbersOf,
  type SentPort,
  type ServiceSpec,
} from './service.ts';

/** The items to allocate for a Service, and the fields in which to set them. */
export interface Plan {
  /** The new `spec.clusterIPs`. An empty text stands for any address. */
  readonly clusterIPs: readonly string[];
  readonly addresses: readonly WantedAddress[];
  readonly ports: readonly WantedPort[];
  /** The items that the Service has or requests by value. A request without a value must not get one of them. */
  readonly named: { readonly addresses: readonly string[]; readonly ports: readonly number[] };
}

export interface WantedAddress {
  readonly index: number;
  readonly family: IPFamily;
  /** The address as the client wrote it, or an empty text for any address. */
  readonly value: string;
}

const NOTHING: Plan = { clusterIPs: [], addresses: [], ports: [], named: { addresses: [], ports: [] } };

/**
 * Returns the items that the registry would allocate for a Service (`pkg/registry/core/service/storage/alloc.go`); none if it
 * will refuse the Service. `stored` is the old object of an update. `configured` begins with the cluster's primary family.
 */
export function planOf(sent: ServiceSpec, stored: ServiceSpec | undefined, configured: readonly IPFamily[]): Plan {
  const before = stored && asRead(stored);
  const after = before === undefined ? completeNew(sent) : completeUpdate(sent, before);
  if (isHeadless(after) || !mayBeAccepted(after)) return NOTHING;
  const addresses = hasClusterIP(after) ? wantedAddresses(after, before, configured) : NOTHING;
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
  const wanted = families.map((family, index) => ({ index, family, value: clusterIPs[index] ?? '' }));
  if (before === undefined || !hasClusterIP(before)) return { clusterIPs, addresses: wanted };
  const isUpgrade =
    !isHeadless(before) &&
    before.ipFamilies.length === 1 &&
    families.length === 2 &&
    !keepsPreferredStacks(after, before);
  return { clusterIPs, addresses: isUpgrade ? wanted.slice(1) : [] };
}

const POLICIES = ['SingleStack', 'PreferDualStack', 'RequireDualStack'];

/**
 * Returns the family of each ClusterIP as the registry decides it (`initIPFamilyFields`), and the ClusterIPs that the spec
 * sets; `undefined` if the registry will refuse the Service.
 */
function familiesOf(after: ServiceSpec, before: ServiceSpec | undefined, configured: readonly IPFamily[]) {
  if (before !== undefined && keepsPreferredStacks(after, before)) {
    return { families: after.ipFamilies.filter(isFamily), clusterIPs: after.clusterIPs };
  }
  const policy = after.ipFamilyPolicy ?? before?.ipFamilyPolicy ?? 'SingleStack';
  if (!isWellFormed(after, policy)) return undefined;
  const spec = before === undefined ? after : reduced(after, before, policy);
  if (spec === undefined || !fitsPolicy(spec, policy, configured)) return undefined;
  const { clusterIPs, ipFamilies } = spec;
  const named = [...ipFamilies, ...clusterIPs.slice(ipFamilies.length).map(familyOf)].filter(isFamily);
  if (!named.every((family) => configured.includes(family))) return undefined;
  const families = named.length === 0 ? configured.slice(0, 1) : named;
  const other = configured.find((family) => family !== families[0]);
  const isUpgraded = policy !== 'SingleStack' && families.length === 1 && other !== undefined;
  return { families: isUpgraded ? [...families, other] : families, clusterIPs };
}

/** Returns true if an update keeps type, IPs and families of a PreferDualStack Service. Any cluster accepts these families. */
function keepsPreferredStacks(after: ServiceSpec, before: ServiceSpec): boolean {
  return (
    after.type === before.type &&
    after.ipFamilyPolicy === 'PreferDualStack' &&
    (before.ipFamilyPolicy ?? 'PreferDualStack') === 'PreferDualStack' &&
    isDeepStrictEqual(after.clusterIPs, before.clusterIPs) &&
    isDeepStrictEqual(after.ipFamilies, before.ipFamilies)
  );
}

/** Returns whether the IPs of the Service pass the registry's checks (`ValidateServiceClusterIPsRelatedFields`). */
function isWellFormed({ clusterIP, clusterIPs, ipFamilies }: ServiceSpec, policy: string): boolean {
  if ((clusterIPs[0] ?? '') !== clusterIP || clusterIPs.length > 2) return false;
  if (clusterIPs.includes(HEADLESS)) return false;
  if (!ipFamilies.every(isFamily) || new Set(ipFamilies).size < ipFamilies.length) return false;
  const actual = clusterIPs.map(familyOf);
  if (actual.includes(undefined) || new Set(actual).size < actual.length) return false;
  return POLICIES.includes(policy) && actual.every((family, index) => family === (ipFamilies[index] ?? family));
}

function fitsPolicy(spec: ServiceSpec, policy: string, configured: readonly IPFamily[]): boolean {
  if (policy === 'SingleStack') return spec.clusterIPs.length < 2 && spec.ipFamilies.length < 2;
  return policy !== 'RequireDualStack' || configured.length === 2;
}

/** Cuts unchanged `clusterIPs` or `ipFamilies` to one for SingleStack. Otherwise, returns `undefined` if a family is removed. */
function reduced(after: ServiceSpec, before: ServiceSpec, policy: string): ServiceSpec | undefined {
  if (policy !== 'SingleStack') return isReduced(after, before) ? undefined : after;
  const { clusterIPs, ipFamilies } = after;
  return {
    ...after,
    clusterIPs: isDeepStrictEqual(clusterIPs, before.clusterIPs) ? clusterIPs.slice(0, 1) : clusterIPs,
    ipFamilies: isDeepStrictEqual(ipFamilies, before.ipFamilies) ? ipFamilies.slice(0, 1) : ipFamilies,
  };
}

function isReduced(after: ServiceSpec, before: ServiceSpec): boolean {
  const isShorter = (one: readonly string[], other: readonly string[]) => one.length > 0 && one.length < other.length;
  return isShorter(after.clusterIPs, before.clusterIPs) || isShorter(after.ipFamilies, before.ipFamilies);
}

function isFamily(text: string | undefined): text is IPFamily {
  return text === 'IPv4' || text === 'IPv6';
}

const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'];
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const LARGEST_PORT = 65_535;

/**
 * Returns whether the registry may accept the type and ports of a Service that is not headless (`ValidateService`). The registry
 * checks them after this allocation, so without this check the items of an invalid Service would leak.
 */
function mayBeAccepted({ type, ports }: ServiceSpec): boolean {
  return (
    TYPES.includes(type) &&
    ports.length > 0 &&
    ports.every((port) => isPort(port, ports.length > 1)) &&
    areUnique(ports.flatMap(({ name }) => (name === '' ? [] : [name]))) &&
    areUnique(ports.map(({ protocol, port }) => `${protocol}/${port}`))
  );
}

function isPort({ name, protocol, port }: SentPort, needsName: boolean): boolean {
  const isNamed = name === '' ? !needsName : NAME.test(name);
  return isNamed && PROTOCOLS.includes(protocol) && port >= 1 && port <= LARGEST_PORT;
}

function areUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}

/** Where a node port belongs: the index of a port in `spec.ports`, or `healthCheck` for the health check port. */
export type PortPlace = number | 'healthCheck';

export interface WantedPort {
  /** The port, or 0 for any port. */
  readonly value: number;
  /** The places that get this node port. A refusal mentions only the first place. */
  readonly at: readonly PortPlace[];
}

/** Returns the node ports of a new Service (`initNodePorts`). For example, 53/TCP and 53/UDP share one node port. */
function newNodePorts(spec: ServiceSpec): readonly WantedPort[] {
  if (!mayHaveNodePorts(spec)) return [];
  // Of several node ports that are requested for a port, the first counts.
  const requested = new Map(
    spec.ports.toReversed().flatMap(({ port, nodePort }) => (nodePort ? [[port, nodePort]] : [])),
  );
  const wanted: WantedPort[] = [];
  const shared = new Map<number, { readonly value: number; readonly at: number[] }>();
  for (const [index, { port, nodePort }] of spec.ports.entries()) {
    if (nodePort === 0 && !getsNodePorts(spec)) continue;
    const one = shared.get(port);
    if (one !== undefined && (nodePort === 0 || nodePort === one.value)) {
      one.at.push(index);
      continue;
    }
    const other = { value: one === undefined ? (requested.get(port) ?? 0) : nodePort, at: [index] };
    if (one === undefined) shared.set(port, other);
    wanted.push(other);
  }
  return wanted;
}

/**
 * Returns the missing node ports of a changed Service (`updateNodePorts`). Returns `undefined` if two ports have the same
 * protocol and node port, because the registry refuses such a Service.
 */
function updatedNodePorts(after: ServiceSpec, before: ServiceSpec): readonly WantedPort[] | undefined {
  if (!mayHaveNodePorts(after)) return [];
  const own = numbersOf(before.ports);
  const seen = new Set<string>();
  const wanted: WantedPort[] = [];
  for (const [index, { nodePort, protocol }] of after.ports.entries()) {
    if (nodePort === 0) {
      if (getsNodePorts(after)) wanted.push({ value: 0, at: [index] });
      continue;
    }
    const id = `${protocol}/${nodePort}`;
    if (seen.has(id)) return undefined;
    seen.add(id);
    if (own.has(nodePort)) continue;
    own.add(nodePort);
    wanted.push({ value: nodePort, at: [index] });
  }
  return wanted;
}

function healthCheckPort(after: ServiceSpec, before: ServiceSpec | undefined): readonly WantedPort[] {
  if (!getsHealthCheckPort(after) || (before !== undefined && getsHealthCheckPort(before))) return [];
  return [{ value: after.healthCheckNodePort, at: ['healthCheck'] }];
}
