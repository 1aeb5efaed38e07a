import { parseAddress } from '../allocator/ip-address.ts';
import { networkContains, parseCidr } from '../allocator/network.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { SERVICE_CIDR_REF, SERVICE_REF, type ServiceCidrObject, type ServiceObject } from '../endpoints/objects.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { otherOwner, type RegisteredCluster } from '../table/clusters.ts';
import { isOnThisMachine } from './check-access.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

/** Warns of what a valid spec may not be meant to say. */
export function checkSpec(cluster: RegisteredCluster, stack: string | undefined, nowMs: number): readonly DoctorLine[] {
  const { spec, paused } = cluster;
  const { mode, allocator, apiServers, endpoints } = spec;
  const lines = [
    ok(
      'spec',
      `mode ${mode}, allocator ${allocator}, ${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}, endpoints by ${endpoints.reconciler}`,
    ),
  ];
  if (mode === 'observe') {
    lines.push(warn('spec', 'mode observe: nothing is written', 'Set mode: enforce when what it would write is right'));
  }
  const owner = otherOwner(cluster, stack);
  if (owner !== undefined) {
    const message = `it belongs to the stack ${owner}: this one (${stack}) only observes it`;
    const fix = `To let this one write: kbctl cluster take-over ${spec.name} --stack ${stack}`;
    lines.push(warn('spec', message, fix));
  }
  if (paused !== undefined && paused.untilMs > nowMs) {
    const until = new Date(paused.untilMs).toISOString();
    const message = `its passes are paused until ${until} by ${paused.by}: ${paused.reason}`;
    lines.push(warn('spec', message, `Wait, or end it: kbctl resume ${spec.name}`));
  }
  const alone =
    apiServers.length === 1 &&
    apiServers.every(({ kind, probe }) => kind === 'server' && !(probe.url && isOnThisMachine(probe.url)));
  if (alone && endpoints.reconciler !== 'none') {
    const fix = 'List the other API servers too; ignore this if there is only one';
    lines.push(warn('spec', 'there is one API server: deregister refuses the last one', fix));
  }
  return lines;
}

/** Checks that the spec has the ranges of the cluster, and its Service. */
export async function checkService(spec: ClusterSpec, kubernetes: ClusterPort): Promise<readonly DoctorLine[]> {
  const [served, service] = await Promise.all([
    kubernetes.get<ServiceCidrObject>(SERVICE_CIDR_REF),
    kubernetes.get<ServiceObject>(SERVICE_REF),
  ]);
  const difference = served && rangeDifference(spec, served.spec.cidrs);
  const lines: DoctorLine[] = difference === undefined ? [] : [difference];
  if (service === undefined) {
    const fix = 'In mode enforce, the kubernetes-service loop creates it';
    return [...lines, warn('service', 'Service default/kubernetes is missing', fix)];
  }
  const { clusterIP = '', ports = [] } = service.spec;
  const [range] = spec.serviceClusterIPRanges;
  const network = parseCidr(range);
  const address = parseAddress(clusterIP);
  const isInside = network !== undefined && address !== undefined && networkContains(network, address);
  if (!isInside && difference === undefined) {
    const fix = 'Set serviceClusterIPRange to that of the API servers (--service-cluster-ip-range)';
    lines.push(fail('service', `Service default/kubernetes has ${clusterIP}, which is not in ${range}`, fix));
  }
  if (!ports.some(({ port }) => port === spec.service.port)) {
    const fix = 'Correct service.port, or set service.reconcile, and passes correct the Service';
    lines.push(warn('service', `Service default/kubernetes has no port ${spec.service.port}`, fix));
  }
  return lines.length > 0 ? lines : [ok('service', `Service default/kubernetes is ${clusterIP}, in ${range}`)];
}

/** Compares the ranges of the spec with the default ServiceCIDR of the cluster. */
function rangeDifference(
  { serviceClusterIPRanges, allocator }: ClusterSpec,
  cidrs: readonly string[],
): DoctorLine | undefined {
  if (serviceClusterIPRanges.join() === cidrs.join()) return undefined;
  const ranges = `the spec has ${serviceClusterIPRanges.join(' and ')}, and ServiceCIDR kubernetes ${cidrs.join(' and ')}`;
  const fix = `Set serviceClusterIPRange: ${cidrs.join(',')}`;
  if (allocator === 'table') return fail('service', `${ranges}: the table allocates addresses of another range`, fix);
  return warn('service', `${ranges}: passes audit that of the cluster`, fix);
}
