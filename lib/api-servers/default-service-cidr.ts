import { canonicalAddress } from '../allocator/ip-address.ts';
import {
  defaultServiceCidr,
  SERVICE_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { serviceAddress } from '../endpoints/kubernetes-service.ts';
import type { ClusterPort, CreateResult } from '../kubernetes/cluster-port.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

/**
 * Creates the ServiceCIDR `kubernetes`, unless the Service has an address of another range: the API servers would then allocate
 * from both ranges.
 */
export async function createDefaultServiceCidr(
  kubernetes: ClusterPort,
  spec: ClusterSpec,
): Promise<CreateResult<ServiceCidrObject>> {
  const service = await kubernetes.get<ServiceObject>(SERVICE_REF);
  const { clusterIP = '' } = service?.spec ?? {};
  if (service === undefined || canonicalAddress(clusterIP) === serviceAddress(spec)) {
    return kubernetes.create(defaultServiceCidr(spec));
  }
  const message = `Service default/kubernetes has ${clusterIP}, not ${serviceAddress(spec)}. Set serviceClusterIPRange to that of the API servers (--service-cluster-ip-range)`;
  return { outcome: 'invalid', message };
}
