import { containsNetwork, type Network, parseCidr } from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import { isDefault, listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { CLUSTER_IP_WORDS, clusterIpClaims } from '../repair/cluster-ips.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { DEFAULT_CLUSTER_IP_RANGE } from '../spec/spec-parts.ts';
import { keepDefaultServiceCidr } from './default-service-cidr.ts';
import { keepService, type Services } from './ip-address-reads.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';
import { repairPass } from './repair.ts';
import { repairAddresses } from './repair-ip-addresses.ts';
import { type RepairErrorWords, type RepairKind, reworded } from './repair-kind.ts';

/*
 * The repair of cluster IPs. A pass
 *
 *   1. reads the ServiceCIDRs, and with `repair.ipAddresses` maintains the default ServiceCIDR (default-service-cidr.ts);
 *   2. repairs the ranges (repair.ts);
 *   3. compares IPAddresses with the Services, if API servers allocate (repair-ip-addresses.ts);
 *   4. corrects IPAddresses, and ends expired holds.
 */

const ERRORS: RepairErrorWords = {
  cannotRead: 'unable to refresh the service IP block',
  cannotList: 'unable to refresh the service IP block',
  cannotRestore: (range, why) =>
    `unable to rebuild allocator from snapshots for family:${familyOf(range)} with error:${why}`,
  cannotCreate: (range, why) => `unable to create CIDR range for family ${familyOf(range)}: ${why}`,
  cannotSave: 'unable to persist the updated service IP allocations',
};

export const clusterIpRepair: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: repairClusterIps,
};

const UNLISTED: Finding = {
  type: 'other',
  message: 'IPAddresses are not checked: passes may not list ServiceCIDRs. Apply deploy/rbac.yaml.',
  item: 'servicecidrs',
};

async function repairClusterIps(context: PassContext): Promise<PassReport> {
  const { kubernetes, spec } = context;
  const listCidrs = () =>
    listServiceCidrs(kubernetes).catch((error: unknown) => {
      throw reworded(ERRORS.cannotRead, error);
    });
  const cidrs = await listCidrs();
  if (cidrs === undefined || !spec.repair.ipAddresses) return repairWithin(context, cidrs);
  const { changes, findings } = await keepDefaultServiceCidr(kubernetes, spec, cidrs);
  const report = await repairWithin(context, changes.length === 0 ? cidrs : await listCidrs());
  return { ...report, changes: [...changes, ...report.changes], findings: [...report.findings, ...findings] };
}

async function repairWithin(context: PassContext, cidrs: readonly ServiceCidr[] | undefined): Promise<PassReport> {
  const isServedAddress = servedAddresses(cidrs);
  const spec = withServedRanges(context.spec, cidrs?.find(isDefault));
  const kind = clusterIps(isServedAddress);
  if (spec.allocator === 'apiserver' && cidrs === undefined) {
    const report = await repairPass(kind, { ...context, spec });
    return { ...report, findings: [...report.findings, UNLISTED] };
  }
  if (spec.allocator !== 'apiserver' || !cidrs?.some(isDefault)) return repairPass(kind, { ...context, spec });
  const services: Services = new Map();
  const report = await repairPass(kind, { ...context, spec }, (service) => keepService(services, service));
  return repairAddresses(context, cidrs, services, report);
}

/**
 * Returns the spec with the ranges of the ServiceCIDR `kubernetes` instead of the default range, if API servers allocate and the
 * ServiceCIDR is not narrower than the default range.
 */
function withServedRanges(spec: ClusterSpec, served: ServiceCidr | undefined): ClusterSpec {
  const isDefaultRange = spec.serviceClusterIPRanges.join() === DEFAULT_CLUSTER_IP_RANGE;
  const { networks = [] } = served ?? {};
  if (spec.allocator !== 'apiserver' || !isDefaultRange || networks.some(isNarrowerThanDefault)) return spec;
  const [primary, secondary] = networks.map(({ text }) => text);
  if (primary === undefined) return spec;
  return { ...spec, serviceClusterIPRanges: secondary === undefined ? [primary] : [primary, secondary] };
}

function isNarrowerThanDefault(network: Network): boolean {
  const own = parseCidr(DEFAULT_CLUSTER_IP_RANGE);
  return own !== undefined && network.text !== own.text && containsNetwork(own, network);
}

function clusterIps(isServedAddress?: (address: string) => boolean): RepairKind {
  return {
    loop: 'cluster-ip-repair',
    words: CLUSTER_IP_WORDS,
    errors: ERRORS,
    listed: { apiserver: 'withClusterIPs', table: 'withClusterIPs' },
    enterClaims: (ranges) => clusterIpClaims(ranges, isServedAddress),
  };
}

function familyOf(range: string): string {
  return parseCidr(range)?.family ?? 'unknown';
}
