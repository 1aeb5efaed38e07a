import { containsNetwork, type Network, parseCidr } from '../allocator/network.ts';
import { FIELD_MANAGER, type KubernetesObject } from '../cluster/kubernetes-objects.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SERVICE_NAME_LABEL,
  SERVICE_REF,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { addressLookUp } from '../dispatch/address-look-up.ts';
import { foreignOwner } from '../endpoints/endpoint-findings.ts';
import { serviceFaults } from '../endpoints/kubernetes-service.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { selfReview } from '../kubernetes/permissions.ts';
import { isDefault, listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import type { DoctorEnvironment } from '../runtime/environment.ts';
import { VERSION } from '../runtime/version.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { otherOwner, type RegisteredCluster } from '../table/clusters.ts';
import { readLeases } from '../table/leases.ts';
import { unlessAborted } from '../util/async.ts';
import { boundedText, isoTime } from '../util/values.ts';
import {
  checkApiServer,
  checkHolds,
  checkKubeconfig,
  checkName,
  checkProbes,
  checkRights,
  checkServer,
  checkWebhook,
} from './check-access.ts';
import { type CheckResult, checked, type DoctorLine, fail, failed, ok, warn } from './line.ts';

/** Runs all checks of one cluster. If a check fails, the checks that depend on it do not run. */
export async function checkCluster(
  cluster: RegisteredCluster,
  environment: DoctorEnvironment,
  signal: AbortSignal,
): CheckResult {
  const { spec } = cluster;
  const nowMs = environment.nowMs();
  const check = (name: string, work: () => CheckResult) => checked(name, signal, work);
  const known = checkSpec(cluster, environment.stack, nowMs);
  let access: ApiServerAccess;
  try {
    access = await unlessAborted(signal, () => environment.loadKubeconfig(spec, signal));
  } catch (error) {
    return [...known, failed('kubeconfig', error)];
  }
  const connections = new ApiServerConnections();
  try {
    const userAgent = `kube-bootstrap-controller/${VERSION} (doctor)`;
    const { server: url } = access;
    const call = { transport: connections.transport(access), server: url, deadline: signal, userAgent, tries: 2 };
    const review = selfReview(call);
    const kubernetes = clusterPort(call);
    const probe = httpsProber({ access, deadline: signal, userAgent });
    const resolveHost = environment.resolveHost(signal);
    const [kubeconfig, name, server, probes] = await Promise.all([
      check('kubeconfig', async () => [...(await checkKubeconfig(access, nowMs)), ...checkServer(spec, access)]),
      check('dns', () => checkName(access, resolveHost)),
      check('api server', () => checkApiServer(access, review)),
      check('probe', async () => {
        const { leases } = await readLeases(environment.table(signal), spec.name);
        const warnings: DoctorLine[] = [];
        const lookUp = addressLookUp(environment, spec, signal, (message) => {
          warnings.push(warn('kubeconfig', message, 'Correct the kubeconfig of the serviceRef'));
        });
        return [...(await checkProbes(spec, leases, { probe, lookUp, signal })), ...warnings];
      }),
    ]);
    const reached = [...known, ...kubeconfig, ...name, ...server, ...probes];
    if (server.some(({ level }) => level === 'fail')) return reached;
    const inside = await Promise.all([
      check('rights', () => checkRights(review, spec, url)),
      check('rights', () => checkHolds(review, spec, kubernetes)),
      check('service', () => checkService(spec, kubernetes)),
      check('service', () => checkWebhook(spec, review)),
      check('owner', () => checkOwners(spec, kubernetes, nowMs)),
    ]);
    return [...reached, ...inside.flat()];
  } finally {
    await connections.close();
  }
}

/** How long doctor reports a write of the endpoints by another writer: longer than any delay between two of our corrections. */
const RECENT_MS = 15 * 60_000;
const ONE_WRITER =
  'Keep one writer: start the API servers with --endpoint-reconciler-type=none, or set endpoints.reconciler to none';

export async function checkOwners(
  { endpoints: { reconciler } }: ClusterSpec,
  kubernetes: ClusterPort,
  nowMs: number,
): CheckResult {
  if (reconciler === 'none') return [ok('owner', 'the spec publishes no endpoints: endpoints.reconciler is none')];
  const { namespace, name } = KUBERNETES_SERVICE;
  const [endpoints, slices] = await Promise.all([
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    kubernetes.list<EndpointSliceObject>('EndpointSlice', namespace, `${SERVICE_NAME_LABEL}=${name}`),
  ]);
  const foreign = slices
    .flatMap((slice) => foreignOwner(slice) ?? [])
    .map((message) => warn('owner', message, ONE_WRITER));
  const found = [endpoints, ...slices].filter((object) => object !== undefined);
  const others = found.flatMap((object) => recentWriters(object, nowMs));
  if (foreign.length + others.length > 0) return [...foreign, ...others];
  return [ok('owner', `no other writer of the endpoints of ${namespace}/${name} for ${RECENT_MS / 60_000} minutes`)];
}

function recentWriters({ kind = '', metadata }: KubernetesObject, nowMs: number): DoctorLine[] {
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, time }) => manager !== FIELD_MANAGER && nowMs - Date.parse(time ?? '') < RECENT_MS,
  );
  return others.map(({ manager = 'an unknown field manager', time = '' }) => {
    const message = `${kind} ${metadata.namespace ?? ''}/${metadata.name} was written by ${manager} at ${time}`;
    return warn('owner', message, ONE_WRITER);
  });
}

/** Describes a valid spec, and warns if its passes write nothing because of its mode, its owner or a pause. */
export function checkSpec(cluster: RegisteredCluster, stack: string | undefined, nowMs: number): readonly DoctorLine[] {
  const { spec, paused } = cluster;
  const { mode, allocator, apiServers, endpoints } = spec;
  const servers = `API servers: ${apiServers.length}`;
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
