import { unlessAborted } from '../dispatch/deadline.ts';
import type { Environment } from '../dispatch/environment.ts';
import { kubeconfigPlace } from '../dispatch/load-kubeconfig.ts';
import { VERSION } from '../dispatch/version.ts';
import { selfReview } from '../kubernetes/access-review.ts';
import { clusterPort } from '../kubernetes/api-server-cluster.ts';
import { httpsProber } from '../kubernetes/https-prober.ts';
import type { ApiServerAccess } from '../kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../kubernetes/transport.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import { listLeases } from '../table/leases.ts';
import type { DoctorEnvironment } from './doctor-environment.ts';
import { type Check, type DoctorLine, failed, looked } from './line.ts';
import { lookAtApiServer, lookAtKubeconfig, lookAtName } from './look-at-access.ts';
import { lookAtOwners } from './look-at-owners.ts';
import { lookAtPasses } from './look-at-passes.ts';
import { lookAtProbes } from './look-at-probes.ts';
import { lookAtRights } from './look-at-rights.ts';
import { lookAtService, lookAtSpec } from './look-at-spec.ts';

export interface Looking {
  readonly environment: Environment;
  readonly doctor: DoctorEnvironment;
  /** Ends every look. */
  readonly signal: AbortSignal;
}

/** All about one cluster. What stands in the way of a look is the one line about it: nothing is looked at behind it. */
export async function lookAtCluster(cluster: RegisteredCluster, looking: Looking): Promise<readonly DoctorLine[]> {
  const { environment, doctor, signal } = looking;
  const { spec } = cluster;
  const nowMs = environment.nowMs();
  const look = (check: Check, work: () => Promise<readonly DoctorLine[]>) =>
    looked(check, () => unlessAborted(signal, work));
  const known = [
    ...lookAtSpec(cluster, environment.stack, nowMs),
    ...(await look('passes', () => lookAtPasses(spec, environment.table(signal), nowMs))),
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
      look('kubeconfig', () => lookAtKubeconfig(access, kubeconfigPlace(spec), nowMs)),
      look('dns', () => lookAtName(access, resolveHost)),
      look('api server', () => lookAtApiServer(access, review)),
      look('probe', async () => {
        const leases = (await listLeases(environment.table(signal), spec.name)).map(({ lease }) => lease);
        return lookAtProbes(spec, leases, { probe, resolveHost, signal });
      }),
    ]);
    const reached = [...known, ...kubeconfig, ...name, ...server, ...probes];
    if (server.some(({ level }) => level === 'fail')) return reached;
    const inside = await Promise.all([
      look('rights', () => lookAtRights(review, spec.mode)),
      look('service', () => lookAtService(spec, kubernetes)),
      look('owner', () => lookAtOwners(spec, kubernetes, nowMs)),
    ]);
    return [...reached, ...inside.flat()];
  } finally {
    await connections.close();
  }
}
