import { canonicalAddress } from '../allocator/ip-address.ts';
import { containsNetwork, type Network, parseCidr } from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  defaultServiceCidr,
  SERVICE_CIDR_REF,
  SERVICE_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { serviceAddress } from '../endpoints/kubernetes-service.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { isDefault, listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { CLUSTER_IP_WORDS, clusterIpClaims } from '../repair/cluster-ips.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { DEFAULT_CLUSTER_IP_RANGE } from '../spec/spec-parts.ts';
import { keepService, type Services } from './ip-address-calls.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';
import { repairPass } from './repair.ts';
import { type RepairErrorWords, type RepairKind, reworded } from './repair-gather.ts';
import { repairAddresses } from './repair-ip-addresses.ts';

/*
 * The repair of cluster IPs. A pass
 *
 *   1. reads the ServiceCIDRs, and with `repair.ipAddresses` maintains the default ServiceCIDR;
 *   2. repairs the ranges (repair.ts);
 *   3. compares IPAddresses with the Services, if API servers allocate (repair-ip-addresses.ts);
 *   4. corrects IPAddresses, and ends expired holds.
 */
export const clusterIpRepair: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: repairClusterIps,
};

const ERRORS: RepairErrorWords = {
  cannotRead: 'unable to refresh the service IP block',
  cannotList: 'unable to refresh the service IP block',
  cannotRestore: (range, why) =>
    `unable to rebuild allocator from snapshots for family:${familyOf(range)} with error:${why}`,
  cannotCreate: (range, why) => `unable to create CIDR range for family ${familyOf(range)}: ${why}`,
  cannotSave: 'unable to persist the updated service IP allocations',
};

function familyOf(range: string): string {
  return parseCidr(range)?.family ?? 'unknown';
}

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
  const isServed = servedAddresses(cidrs);
  const kind: RepairKind = {
    loop: 'cluster-ip-repair',
    words: CLUSTER_IP_WORDS,
    errors: ERRORS,
    listed: { apiserver: 'withClusterIPs', table: 'withClusterIPs' },
    enterClaims: (ranges) => clusterIpClaims(ranges, isServed),
  };
  if (context.spec.allocator !== 'apiserver') return repairPass(kind, context);
  const audited = { ...context, spec: withServedRanges(context.spec, cidrs?.find(isDefault)) };
  if (cidrs?.some(isDefault)) {
    const services: Services = new Map();
    const report = await repairPass(kind, audited, (service) => keepService(services, service));
    return repairAddresses(context, cidrs, services, report);
  }
  const report = await repairPass(kind, audited);
  return cidrs === undefined ? { ...report, findings: [...report.findings, UNLISTED] } : report;
}

/**
 * Returns the spec with the ranges of the ServiceCIDR `kubernetes`, if the spec has the default range and the ServiceCIDR is not
 * narrower than it.
 */
function withServedRanges(spec: ClusterSpec, served: ServiceCidr | undefined): ClusterSpec {
  const { networks = [] } = served ?? {};
  const [primary, secondary] = networks.map(({ text }) => text);
  const isDefaultRange = spec.serviceClusterIPRanges.join() === DEFAULT_CLUSTER_IP_RANGE;
  if (!isDefaultRange || primary === undefined || networks.some(isNarrowerThanDefault)) return spec;
  return { ...spec, serviceClusterIPRanges: secondary === undefined ? [primary] : [primary, secondary] };
}

function isNarrowerThanDefault(network: Network): boolean {
  const own = parseCidr(DEFAULT_CLUSTER_IP_RANGE);
  return own !== undefined && network.text !== own.text && containsNetwork(own, network);
}

type Kept = Pick<PassReport, 'changes' | 'findings'>;
const NOTHING: Kept = { changes: [], findings: [] };

/**
 * Maintains the ServiceCIDR `kubernetes` like `pkg/controlplane/controller/defaultservicecidr`: creates it, and adds the second
 * range of the spec to the first. Does not change other ranges, or a ServiceCIDR that is not ready.
 */
async function keepDefaultServiceCidr(
  kubernetes: ClusterPort,
  spec: ClusterSpec,
  cidrs: readonly ServiceCidr[],
): Promise<Kept> {
  const current = cidrs.find(isDefault);
  const needsSecond = current?.ready === true && current.networks.length < spec.serviceClusterIPRanges.length;
  if (current !== undefined && !needsSecond) return NOTHING;
  const verb = current === undefined ? 'create' : 'update';
  try {
    const result = await (current === undefined ? create(kubernetes, spec) : addRange(kubernetes, spec));
    if (result?.outcome === 'created' || result?.outcome === 'updated') {
      const change = `${result.outcome} servicecidr kubernetes: ${result.object.spec.cidrs.join(' ')}`;
      return { changes: [change], findings: [] };
    }
    return result !== undefined && 'message' in result ? notCorrected(verb, result.message) : NOTHING;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    // API servers before Kubernetes 1.33 do not serve the kind.
    return error.code === 'Rejected' ? NOTHING : notCorrected(verb, error.message);
  }
}

async function create(kubernetes: ClusterPort, spec: ClusterSpec) {
  const service = await kubernetes.get<ServiceObject>(SERVICE_REF);
  const { clusterIP = '' } = service?.spec ?? {};
  // The address of the Service shows the range of the API servers. With another range here, they would allocate from both.
  if (service !== undefined && canonicalAddress(clusterIP) !== serviceAddress(spec)) {
    const message = `Service default/kubernetes has ${clusterIP}, not ${serviceAddress(spec)}. Set serviceClusterIPRange to that of the API servers (--service-cluster-ip-range)`;
    return { outcome: 'invalid', message } as const;
  }
  return kubernetes.create(defaultServiceCidr(spec));
}

async function addRange(kubernetes: ClusterPort, { serviceClusterIPRanges }: ClusterSpec) {
  const current = await kubernetes.get<ServiceCidrObject>(SERVICE_CIDR_REF);
  const [only, ...others] = current?.spec.cidrs ?? [];
  if (current === undefined || only !== serviceClusterIPRanges[0] || others.length > 0) return undefined;
  return kubernetes.update({ ...current, spec: { cidrs: serviceClusterIPRanges } });
}

function notCorrected(verb: string, why: string): Kept {
  const message = `ServiceCIDR kubernetes is not corrected (${verb}): ${why}`;
  return { changes: [], findings: [{ type: 'notCorrected', message, item: 'servicecidrs' }] };
}
