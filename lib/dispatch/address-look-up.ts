import { unlessAborted } from '../cluster/async.ts';
import { RECORDS_OF_A_HOST } from '../cluster/bounds.ts';
import type { ClusterSpec, SharedHostSpec } from '../cluster/cluster-spec.ts';
import { type EndpointSliceObject, SERVICE_NAME_LABEL, type ServiceObject } from '../endpoints/objects.ts';
import { ClusterError, type ClusterPort, type HostResolver, type LookUp } from '../kubernetes/cluster-port.ts';
import type { Environment } from '../runtime/environment.ts';

type Sources = Pick<Environment, 'resolveHost' | 'healthyTargets' | 'connect'>;

/**
 * Returns the look-up of the addresses in a spec. An empty result counts as a failed look-up, so that the known addresses stay
 * published.
 */
export function addressLookUp(
  { resolveHost, healthyTargets, connect }: Sources,
  spec: ClusterSpec,
  deadline: AbortSignal,
): LookUp {
  const resolve = resolveHost(deadline);
  return async (source, signal) => {
    const { host, targetGroupArn, serviceRef } = source;
    if (targetGroupArn !== undefined) {
      const targets = (await healthyTargets?.(targetGroupArn, signal)) ?? [];
      if (targets.length === 0) throw unavailable(`${host} has no healthy target`);
      return targets;
    }
    if (serviceRef === undefined) return resolve(host, signal);
    return unlessAborted(signal, async () => {
      // The management cluster gets the name `host`, which no registered cluster can have. Code that loads kubeconfigs by cluster
      // name can then not confuse its kubeconfig with that of the cluster in `spec`.
      const management = { ...spec, name: host, kubeconfig: serviceRef.kubeconfig, apiServers: [] };
      const { kubernetes } = await connect(management, { loop: 'kubernetes-service', signal, warn: () => {} });
      return addressesOfService(serviceRef, kubernetes, (name) => resolve(name, signal));
    });
  };
}

async function addressesOfService(
  { namespace, name }: NonNullable<SharedHostSpec['serviceRef']>,
  kubernetes: ClusterPort,
  resolve: HostResolver,
): Promise<readonly string[]> {
  const service = await kubernetes.get<ServiceObject>({ kind: 'Service', namespace, name });
  const text = `Service ${namespace}/${name} of the management cluster`;
  if (service === undefined) throw unavailable(`${text} does not exist`);
  const addresses =
    service.spec.type === 'LoadBalancer'
      ? await addressesOfBalancer(service.status?.loadBalancer?.ingress ?? [], resolve)
      : addressesOfReady(await kubernetes.list('EndpointSlice', namespace, `${SERVICE_NAME_LABEL}=${name}`));
  if (addresses.length === 0) throw unavailable(`${text} has no address yet`);
  return addresses;
}

async function addressesOfBalancer(
  ingress: readonly { readonly ip?: string; readonly hostname?: string }[],
  resolve: HostResolver,
): Promise<readonly string[]> {
  const addresses = ingress.slice(0, RECORDS_OF_A_HOST).map(async ({ ip, hostname }) => {
    if (ip !== undefined) return [ip];
    return hostname === undefined ? [] : ((await resolve(hostname)) ?? []);
  });
  return (await Promise.all(addresses)).flat();
}

function addressesOfReady(slices: readonly EndpointSliceObject[]): readonly string[] {
  const ready = slices
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  return [...new Set(ready.flatMap(({ addresses }) => addresses))];
}

function unavailable(message: string): ClusterError {
  return new ClusterError('Unavailable', message);
}
