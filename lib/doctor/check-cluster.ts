import { type ClusterSpec, LOOPS, type Loop, SCHEDULE_SECONDS } from '../cluster/cluster-spec.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { foreignSlice } from '../endpoints/endpoint-findings.ts';
import {
  ENDPOINTS_REF,
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SERVICE_NAME_LABEL,
} from '../endpoints/objects.ts';
import { clusterPort, FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { selfReview } from '../kubernetes/permissions.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import { unlessAborted } from '../runtime/deadline.ts';
import type { Environment } from '../runtime/environment.ts';
import { kubeconfigPlace } from '../runtime/load-kubeconfig.ts';
import { VERSION } from '../runtime/version.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { listLeases } from '../table/leases.ts';
import { type RunRecord, readRunRecord } from '../table/run-records.ts';
import { checkApiServer, checkKubeconfig, checkName, checkProbes, checkRights } from './check-access.ts';
import { checkService, checkSpec } from './check-spec.ts';
import { type Check, type DoctorEnvironment, type DoctorLine, fail, failed, looked, ok, warn } from './line.ts';

export interface Looking {
  readonly environment: Environment;
  readonly doctor: DoctorEnvironment;
  /** Ends every look. */
  readonly signal: AbortSignal;
}

/** All about one cluster. What stands in the way of a look is the one line about it: nothing is looked at behind it. */
export async function checkCluster(cluster: RegisteredCluster, looking: Looking): Promise<readonly DoctorLine[]> {
  const { environment, doctor, signal } = looking;
  const { spec } = cluster;
  const nowMs = environment.nowMs();
  const look = (check: Check, work: () => Promise<readonly DoctorLine[]>) =>
    looked(check, () => unlessAborted(signal, work));
  const known = [
    ...checkSpec(cluster, environment.stack, nowMs),
    ...(await look('passes', () => checkPasses(spec, environment.table(signal), nowMs))),
  ];

  let access: ApiServerAccess;
  try {
    access = await unlessAborted(signal, () => doctor.loadKubeconfig(spec, signal));
  } catch (error) {
    return [...known, failed('kubeconfig', error)];
  }
  const connections = new ApiServerConnections();
  try {
    const userAgent = `kube-bootstrap-controller/${VERSION} (doctor)`;
    const call = {
      transport: connections.transport(access),
      server: access.server,
      deadline: signal,
      userAgent,
      tries: 2,
    };
    const review = selfReview(call);
    const kubernetes = clusterPort(call);
    const probe = httpsProber({ access, deadline: signal, userAgent });
    const resolveHost = environment.resolveHost(signal);
    const [kubeconfig, name, server, probes] = await Promise.all([
      look('kubeconfig', () => checkKubeconfig(access, kubeconfigPlace(spec), nowMs)),
      look('dns', () => checkName(access, resolveHost)),
      look('api server', () => checkApiServer(access, review)),
      look('probe', async () => {
        const leases = (await listLeases(environment.table(signal), spec.name)).map(({ lease }) => lease);
        return checkProbes(spec, leases, { probe, resolveHost, signal });
      }),
    ]);
    const reached = [...known, ...kubeconfig, ...name, ...server, ...probes];
    if (server.some(({ level }) => level === 'fail')) return reached;
    const inside = await Promise.all([
      look('rights', () => checkRights(review, spec.mode)),
      look('service', () => checkService(spec, kubernetes)),
      look('owner', () => checkOwners(spec, kubernetes, nowMs)),
    ]);
    return [...reached, ...inside.flat()];
  } finally {
    await connections.close();
  }
}

/** As long as the kubernetes-service loop waits at most before it contests again. */
const RECENT_MS = 15 * 60_000;
const LET_GO =
  'Let one of them go: start the API servers with --endpoint-reconciler-type=none, or set endpoints.reconciler to none';

/** Who else writes the endpoints of the kubernetes Service. */
export async function checkOwners(
  { endpoints: { reconciler } }: ClusterSpec,
  kubernetes: ClusterPort,
  nowMs: number,
): Promise<readonly DoctorLine[]> {
  if (reconciler === 'none') return [ok('owner', 'the spec publishes no endpoints: somebody else does')];
  const { namespace, name } = KUBERNETES_SERVICE;
  const [endpoints, slices] = await Promise.all([
    kubernetes.get<EndpointsObject>(ENDPOINTS_REF),
    kubernetes.list<EndpointSliceObject>('EndpointSlice', namespace, `${SERVICE_NAME_LABEL}=${name}`),
  ]);
  const foreign = slices.flatMap(foreignSlice).map(({ message }) => warn('owner', message, LET_GO));
  const found = [endpoints, ...slices].filter((object) => object !== undefined);
  const others = found.flatMap((object) => recentWriters(object, nowMs));
  if (foreign.length + others.length > 0) return [...foreign, ...others];
  return [
    ok('owner', `nobody else has written the endpoints of ${namespace}/${name} for ${RECENT_MS / 60_000} minutes`),
  ];
}

function recentWriters({ kind = '', metadata }: KubernetesObject, nowMs: number): DoctorLine[] {
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, time }) => manager !== FIELD_MANAGER && nowMs - Date.parse(time ?? '') < RECENT_MS,
  );
  return others.map(({ manager = 'an unknown field manager', time = '' }) => {
    const message = `${kind} ${metadata.namespace ?? ''}/${metadata.name} was written by ${manager} at ${time}`;
    return warn('owner', message, LET_GO);
  });
}

const PERIODS = 3;
/** The record of what runs every ten seconds is written once a minute. */
const LEAST_PERIOD_MS = 60_000;

/** How the loops fared by their run records. */
export async function checkPasses(
  spec: ClusterSpec,
  table: KeyValueTable,
  nowMs: number,
): Promise<readonly DoctorLine[]> {
  const looked = await Promise.all(
    LOOPS.map(async (loop) => passLine(loop, spec, (await readRunRecord(table, spec.name, loop))?.record, nowMs)),
  );
  return looked.every(({ level }) => level === 'ok') ? [ok('passes', 'every loop succeeded lately')] : looked;
}

function passLine(loop: Loop, spec: ClusterSpec, record: RunRecord | undefined, nowMs: number): DoctorLine {
  if (record === undefined) {
    return warn('passes', `${loop} never ran`, 'Wait for its schedule, then look at the log of its function');
  }
  const { error, failuresInARow, lastSuccessAtMs, findings } = record;
  if (failuresInARow > 0) {
    const times = failuresInARow === 1 ? 'once' : `${failuresInARow} times in a row`;
    return fail('passes', `${loop} failed ${times}: ${error?.message ?? 'its record does not say why'}`);
  }
  const periodMs = Math.max(LEAST_PERIOD_MS, spec.intervalSeconds[loop] * 1000, SCHEDULE_SECONDS[loop] * 1000);
  const sinceMs = nowMs - (lastSuccessAtMs ?? record.startedAtMs);
  if (sinceMs > PERIODS * periodMs) {
    const fix = 'Look whether its schedule is enabled, and at the log of its function';
    return fail('passes', `${loop} has not succeeded for ${Math.round(sinceMs / 60_000)} minutes`, fix);
  }
  const [owners] = findings.filter(({ type }) => type === 'twoOwners');
  return owners === undefined ? ok('passes', `${loop} succeeded`) : fail('passes', `${loop}: ${owners.message}`);
}
