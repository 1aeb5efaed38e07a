import { formatAddress, type IPFamily, parseAddress } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import {
  type ClaimedRange,
  type ClaimWords,
  type EnterClaims,
  type FindingList,
  RepairError,
  reportClaim,
  serviceFinding,
} from './claims.ts';

export const CLUSTER_IP_WORDS: ClaimWords = {
  item: 'cluster IP',
  noteItem: 'Cluster IP',
  shortItem: 'cluster IP',
  range: 'service CIDR',
  action: 'ClusterIPAllocation',
  reasons: {
    notAllocated: 'ClusterIPNotAllocated',
    duplicate: 'ClusterIPAlreadyAllocated',
    outOfRange: 'ClusterIPOutOfRange',
    full: 'ServiceCIDRFull',
  },
  full: (claim) => `is full; you must widen the CIDR in order to create new services for Cluster IP ${claim}`,
};

type RangeOfFamily = ReadonlyMap<IPFamily, ClaimedRange>;

/** Returns whether API servers allocate this address, which is in no range of the spec. */
type IsServed = (address: string) => boolean;

/**
 * Returns a function that enters each cluster IP of a Service into the range of its IP family.
 * @throws RepairError `BadRange` if two ranges have the same family: each would count the addresses of the other as leaks
 */
export function clusterIpClaims(ranges: readonly ClaimedRange[], isServed: IsServed = () => false): EnterClaims {
  const families = byFamily(ranges);
  return (service, findings) => {
    if (service.clusterIP === '' || service.clusterIP === 'None') return undefined;
    for (const text of service.clusterIPs) {
      const aborted = enterAddress(families, isServed, service, text, findings);
      if (aborted !== undefined) return aborted;
    }
    return undefined;
  };
}

/** Enters an address. First guesses the family from the text: parsing is slow, and unnecessary for a recorded claim. */
function enterAddress(
  families: RangeOfFamily,
  isServed: IsServed,
  service: ServiceClaim,
  text: string,
  findings: FindingList,
): RepairError | undefined {
  const looksLike = text.includes(':') ? 'IPv6' : 'IPv4';
  const guessed = families.get(looksLike)?.claim(text, service);
  if (guessed === 'recorded') return undefined;

  const parsed = parseAddress(text);
  if (parsed === undefined) {
    // Upstream prints `<nil>` for an address that does not parse.
    findings.push('invalid', () => notValid(service, text, text, 'is not a valid IP; please recreate'));
    return undefined;
  }
  const { family } = parsed;
  const address = formatAddress(parsed);
  const range = families.get(family);
  const result = family === looksLike ? guessed : range?.claim(text, service);
  if (result === 'recorded') return undefined;
  const isOutside = result === undefined || (result !== 'notRecorded' && result.code === 'NotInRange');
  if (isOutside && isServed(address)) {
    findings.outside++;
    return undefined;
  }
  if (range !== undefined && result !== undefined) {
    const claim = { service, item: address, shown: `[${family}]:${address}`, range: range.spec };
    return reportClaim(CLUSTER_IP_WORDS, claim, result, findings);
  }
  const why = 'is of ip family that is no longer configured on cluster; please recreate';
  findings.push('invalid', () => notValid(service, address, `${address}(${family})`, why));
  return undefined;
}

function notValid(service: ServiceClaim, item: string, shown: string, why: string): Finding {
  return serviceFinding(service, item, 'ClusterIPValidation', {
    type: 'invalid',
    reason: 'ClusterIPNotValid',
    note: `Cluster IP ${shown} ${why} service`,
    message: `the cluster IP ${shown} for service ${service.namespace}/${service.name} ${why}`,
  });
}

function byFamily(ranges: readonly ClaimedRange[]): RangeOfFamily {
  const families = new Map<IPFamily, ClaimedRange>();
  for (const range of ranges) {
    const family = parseCidr(range.spec)?.family;
    if (family === undefined || families.has(family)) {
      const specs = ranges.map(({ spec }) => spec).join(' and ');
      throw new RepairError('BadRange', `${specs} are not ranges of different families: correct the cluster spec`);
    }
    families.set(family, range);
  }
  return families;
}
