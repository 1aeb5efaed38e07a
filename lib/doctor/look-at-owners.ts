import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { foreignSlice } from '../endpoints/endpoint-findings.ts';
import {
  type EndpointSliceObject,
  type EndpointsObject,
  KUBERNETES_SERVICE,
  SERVICE_NAME_LABEL,
} from '../endpoints/objects.ts';
import { FIELD_MANAGER } from '../kubernetes/api-server-cluster.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { ENDPOINTS_REF } from '../loops/write-endpoints.ts';
import { type DoctorLine, ok, warn } from './line.ts';

/** As long as the kubernetes-service loop waits at most before it contests again. */
const RECENT_MS = 15 * 60_000;
const LET_GO =
  'Let one of them go: start the API servers with --endpoint-reconciler-type=none, or set endpoints.reconciler to none';

/** Who else writes the endpoints of the kubernetes Service. */
export async function lookAtOwners(
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
