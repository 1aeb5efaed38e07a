import { FIELD_MANAGER, type KubernetesObject } from '../cluster/kubernetes-objects.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SERVICE_NAME_LABEL,
} from '../cluster/published-objects.ts';
import { addressLookUp } from '../dispatch/address-look-up.ts';
import { foreignOwner } from '../endpoints/endpoint-findings.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { selfReview } from '../kubernetes/permissions.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import type { DoctorEnvironment } from '../runtime/environment.ts';
import { VERSION } from '../runtime/version.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { readLeases } from '../table/leases.ts';
import { unlessAborted } from '../util/async.ts';
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
import { checkService, checkSpec } from './check-spec.ts';
import { type CheckResult, checked, type DoctorLine, failed, ok, warn } from './line.ts';

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

/** A write of the endpoints by another writer counts for this long: more than any delay between two corrections of ours. */
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
