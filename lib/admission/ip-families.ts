import { isDeepStrictEqual } from 'node:util';
import { familyOf, type IPFamily } from '../allocator/ip-address.ts';
import { HEADLESS, type ServiceSpec } from './service.ts';

/** The families of a Service, one for each ClusterIP, and the ClusterIPs that its spec sets. */
export interface Families {
  readonly families: readonly IPFamily[];
  readonly clusterIPs: readonly string[];
}

const POLICIES = ['SingleStack', 'PreferDualStack', 'RequireDualStack'];

/**
 * Returns the families of a Service as the registry decides them (`initIPFamilyFields` of
 * `pkg/registry/core/service/storage/alloc.go`); `undefined` if the registry will refuse the Service. The Service must not be
 * headless or of type ExternalName.
 */
export function familiesOf(
  after: ServiceSpec,
  before: ServiceSpec | undefined,
  configured: readonly IPFamily[],
): Families | undefined {
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

/**
 * Returns true if an update leaves the type, the families and the ClusterIPs of a Service with PreferDualStack
 * unchanged. Such a Service keeps its families, even if the cluster has gained or lost its second family.
 */
export function keepsPreferredStacks(after: ServiceSpec, before: ServiceSpec): boolean {
  return (
    after.type === before.type &&
    after.ipFamilyPolicy === 'PreferDualStack' &&
    (before.ipFamilyPolicy ?? 'PreferDualStack') === 'PreferDualStack' &&
    isDeepStrictEqual(after.clusterIPs, before.clusterIPs) &&
    isDeepStrictEqual(after.ipFamilies, before.ipFamilies)
  );
}

/** Returns whether the Service passes the registry's checks of its IPs (`ValidateServiceClusterIPsRelatedFields`). */
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

/** Returns the spec, reduced to one family for SingleStack; `undefined` if the update removes a family with any other policy. */
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
