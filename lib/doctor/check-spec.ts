import { containsNetwork, type Network, parseCidr } from '../allocator/network.ts';
import { SERVICE_REF, type ServiceObject } from '../cluster/published-objects.ts';
import { serviceFaults } from '../endpoints/kubernetes-service.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { isDefault, listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { otherOwner, type RegisteredCluster } from '../table/clusters.ts';
import { boundedText, isoTime } from '../util/values.ts';
import { type CheckResult, type DoctorLine, fail, ok, warn } from './line.ts';

/** Describes a valid spec, and warns if its passes write nothing because of its mode, its owner or a pause. */
export function checkSpec(cluster: RegisteredCluster, stack: string | undefined, nowMs: number): readonly DoctorLine[] {
  const { spec, paused } = cluster;
  const { mode, allocator, apiServers, endpoints } = spec;
  const servers = `${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}`;
  const lines = [ok('spec', `mode ${mode}, allocator ${allocator}, ${servers}, endpoints by ${endpoints.reconciler}`)];
  if (mode === 'observe') {
    const fix = 'Set mode: enforce when its planned writes are correct';
    lines.push(warn('spec', 'mode observe: nothing is written', fix));
  }
  const owner = otherOwner(cluster, stack);
  if (owner !== undefined) {
    const message = `it belongs to the stack ${owner}: this one (${stack}) only observes it`;
    const fix = `To make this stack its owner: kbctl cluster take-over ${spec.name} --stack ${stack}`;
    lines.push(warn('spec', message, fix));
  }
  if (paused !== undefined && paused.untilMs > nowMs) {
    const until = isoTime(paused.untilMs);
    const message = `its passes are paused until ${until} by ${paused.by}: ${paused.reason}`;
    lines.push(warn('spec', message, `Wait, or end it: kbctl resume ${spec.name}`));
  }
  return lines;
}

export async function checkService(spec: ClusterSpec, kubernetes: ClusterPort): CheckResult {
  const [cidrs, service] = await Promise.all([
    listServiceCidrs(kubernetes),
    kubernetes.get<ServiceObject>(SERVICE_REF),
  ]);
  const record = recordLines(spec, cidrs ?? []);
  const difference = rangeDifference(spec, cidrs ?? []);
  const lines: DoctorLine[] = difference === undefined ? [] : [difference];
  if (service === undefined) {
    const fix = 'In mode enforce, the kubernetes-service loop creates it';
    return [...record, ...lines, warn('service', 'Service default/kubernetes is missing', fix)];
  }
  const { clusterIP = '', ports = [] } = service.spec;
  const [range] = spec.serviceClusterIPRanges;
  const isInside = servedAddresses([{ networks: networksIn([range]) }]);
  if (!isInside(clusterIP) && difference === undefined) {
    const fix = 'Set serviceClusterIPRange to that of the API servers (--service-cluster-ip-range)';
    lines.push(fail('service', `Service default/kubernetes has ${clusterIP}, which is not in ${range}`, fix));
  }
  if (!ports.some(({ port }) => port === spec.service.port)) {
    const fix = 'Correct service.port, or set service.reconcile, and passes correct the Service';
    lines.push(warn('service', `Service default/kubernetes has no port ${spec.service.port}`, fix));
  }
  lines.push(...serviceFaults(spec, service).map(({ message, remedy }) => fail('service', message, remedy)));
  if (lines.length === 0) lines.push(ok('service', `Service default/kubernetes is ${clusterIP}, in ${range}`));
  return [...record, ...lines];
}

function recordLines({ allocator }: ClusterSpec, cidrs: readonly ServiceCidr[]): DoctorLine[] {
  if (allocator !== 'apiserver' || cidrs.length === 0) return [];
  const names = cidrs.map((cidr) => `${cidr.name} (${textOf(cidr.networks)}${cidr.ready ? '' : ', not ready'})`);
  return [ok('service', `API servers allocate from ServiceCIDR ${boundedText(names.join(', '))}`)];
}

function textOf(networks: readonly Network[]): string {
  return networks.map(({ text }) => text).join(', ');
}

function networksIn(ranges: readonly string[]): Network[] {
  return ranges.map(parseCidr).filter((network) => network !== undefined);
}

/** Reports ServiceCIDRs outside the ranges of the spec; if the API servers allocate, checks only the default ServiceCIDR. */
function rangeDifference(
  { serviceClusterIPRanges, allocator }: ClusterSpec,
  cidrs: readonly ServiceCidr[],
): DoctorLine | undefined {
  const own = networksIn(serviceClusterIPRanges);
  const isMissing = (network: Network) => !own.some((range) => containsNetwork(range, network));
  const missing = cidrs
    .filter((cidr) => allocator === 'table' || isDefault(cidr))
    .map(({ name, networks }) => ({ name, networks: networks.filter(isMissing) }))
    .filter(({ networks }) => networks.length > 0);
  if (missing.length === 0) return undefined;
  const served = cidrs.flatMap(({ networks }) => networks);
  const overlaps = own.some((range) =>
    served.some((one) => containsNetwork(range, one) || containsNetwork(one, range)),
  );
  const names = missing.map(({ name, networks }) => `${name} (${textOf(networks)})`);
  const message = `the spec has ${serviceClusterIPRanges.join(' and ')}, which does not contain ServiceCIDR ${names.join(', ')}`;
  const fix = `Set serviceClusterIPRange to one that contains ${textOf(served)}`;
  if (allocator === 'table' && !overlaps) {
    return fail('service', `${message}: the table allocates addresses that the API servers refuse`, fix);
  }
  return warn('service', `${message}: passes might not check its addresses`, fix);
}
