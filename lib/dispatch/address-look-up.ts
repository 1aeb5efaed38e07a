import { type EndpointSliceObject, SERVICE_NAME_LABEL, type ServiceObject } from '../cluster/published-objects.ts';
import {
  ClusterError,
  type ClusterPort,
  type FoundAddresses,
  type HostResolver,
  type LookUp,
} from '../kubernetes/cluster-port.ts';
import type { Environment } from '../runtime/environment.ts';
import type { ClusterSpec, SharedHostSpec } from '../spec/cluster-spec.ts';
import { unlessAborted } from '../util/async.ts';
import { RECORDS_OF_A_HOST } from '../util/bounds.ts';
import { boundedText } from '../util/values.ts';

type Sources = Pick<Environment, 'resolveHost' | 'healthyTargets' | 'connect'>;

/**
 * Returns the function that looks up the addresses of a source in the spec. After a failed look-up, the known addresses stay
 * published. Therefore, an empty result counts as failed, and an incomplete result states what could not be read.
 */
export function addressLookUp(
  { resolveHost, healthyTargets, connect }: Sources,
  spec: ClusterSpec,
  deadline: AbortSignal,
  warn: (text: string) => void,
): LookUp {
  const resolve = resolveHost(deadline);
  return async (source, signal) => {
    const { host, targetGroupArn, serviceRef } = source;
    if (targetGroupArn !== undefined) {
      const targets = await healthyTargets?.(targetGroupArn, signal);
      return found(targets ?? { addresses: [] }, `${host} has no healthy target`);
    }
    if (serviceRef === undefined) {
      const addresses = await resolve(host, signal);
      return addresses && { addresses };
    }
    return unlessAborted(signal, async () => {
      // No registered cluster has the name `host`, so the kubeconfigs of the two clusters, which are loaded by name, differ.
      const management = { ...spec, name: host, kubeconfig: serviceRef.kubeconfig, apiServers: [] };
      const warnOfSource = (text: string) => warn(`${host}: ${text}`);
      const { kubernetes } = await connect(management, { loop: 'kubernetes-service', signal, warn: warnOfSource });
      return addressesOfService(serviceRef, kubernetes, (name) => resolve(name, signal));
    });
  };
}

async function addressesOfService(
  { namespace, name }: NonNullable<SharedHostSpec['serviceRef']>,
  kubernetes: ClusterPort,
  resolve: HostResolver,
): Promise<FoundAddresses> {
  const service = await kubernetes.get<ServiceObject>({ kind: 'Service', namespace, name });
  const text = `Service ${namespace}/${name} of the management cluster`;
  if (service === undefined) throw new ClusterError('Unavailable', `${text} does not exist`);
  const addresses =
    service.spec?.type === 'LoadBalancer'
      ? await addressesOfBalancer(service.status?.loadBalancer?.ingress ?? [], resolve)
      : addressesOfReady(await kubernetes.list('EndpointSlice', namespace, `${SERVICE_NAME_LABEL}=${name}`));
  return found(addresses, `${text} has no address yet`);
}

function found(addresses: FoundAddresses, otherwise: string): FoundAddresses {
  if (addresses.addresses.length > 0 || addresses.unread !== undefined) return addresses;
  throw new ClusterError('Unavailable', otherwise);
}

async function addressesOfBalancer(
  ingress: readonly { readonly ip?: string; readonly hostname?: string }[],
  resolve: HostResolver,
): Promise<FoundAddresses> {
  const entries = await Promise.all(
    ingress.slice(0, RECORDS_OF_A_HOST).map(async ({ ip, hostname }) => {
      if (ip || !hostname) return { hostname, addresses: ip ? [ip] : [] };
      return { hostname, addresses: await resolve(hostname) };
    }),
  );
  const unread = entries.flatMap(({ hostname, addresses }) => (addresses === undefined ? boundedText(hostname) : []));
  if (ingress.length > RECORDS_OF_A_HOST) unread.push(`${ingress.length - RECORDS_OF_A_HOST} more entries`);
  return {
    addresses: entries.flatMap(({ addresses = [] }) => addresses),
    ...(unread.length > 0 && { unread: `its load balancer's ${unread.join(', ')} could not be looked up` }),
  };
}

function addressesOfReady(slices: readonly EndpointSliceObject[]): FoundAddresses {
  const ready = slices
    .flatMap(({ endpoints }) => endpoints ?? [])
    .filter(({ conditions }) => conditions?.ready !== false);
  return { addresses: [...new Set(ready.flatMap(({ addresses }) => addresses ?? []))] };
}
