import { canonicalAddress } from '../allocator/ip-address.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  defaultServiceCidr,
  SERVICE_CIDR_REF,
  SERVICE_REF,
  type ServiceCidrObject,
  type ServiceObject,
} from '../cluster/published-objects.ts';
import { serviceAddress } from '../endpoints/kubernetes-service.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { isDefault, type ServiceCidr } from '../kubernetes/service-cidrs.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

interface Kept {
  readonly changes: readonly string[];
  readonly findings: readonly Finding[];
}

const NOTHING: Kept = { changes: [], findings: [] };

/**
 * Maintains the ServiceCIDR `kubernetes` for API servers that do not maintain it
 * (`pkg/controlplane/controller/defaultservicecidr`): creates it if it is missing, and adds the second range of the
 * spec to the first. Changes no other range, and no ServiceCIDR that is not ready.
 */
export async function keepDefaultServiceCidr(
  kubernetes: ClusterPort,
  spec: ClusterSpec,
  cidrs: readonly ServiceCidr[],
): Promise<Kept> {
  const current = cidrs.find(isDefault);
  const needsSecond = current?.ready === true && current.networks.length < spec.serviceClusterIPRanges.length;
  if (current !== undefined && !needsSecond) return NOTHING;
  const verb = current === undefined ? 'create' : 'update';
  try {
    const result = await (current === undefined ? create(kubernetes, spec) : addRange(kubernetes, spec));
    if (result?.outcome === 'created' || result?.outcome === 'updated') {
      return {
        ...NOTHING,
        changes: [`${result.outcome} servicecidr kubernetes: ${result.object.spec.cidrs.join(' ')}`],
      };
    }
    return result !== undefined && 'message' in result ? notCorrected(verb, result.message) : NOTHING;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    // API servers before Kubernetes 1.33 do not serve the kind.
    return error.code === 'Rejected' ? NOTHING : notCorrected(verb, error.message);
  }
}

async function create(kubernetes: ClusterPort, spec: ClusterSpec) {
  const service = await kubernetes.get<ServiceObject>(SERVICE_REF);
  const { clusterIP = '' } = service?.spec ?? {};
  // The address of the Service shows the range of the API servers. With another range here, they would allocate from both.
  if (service !== undefined && canonicalAddress(clusterIP) !== serviceAddress(spec)) {
    const message = `Service default/kubernetes has ${clusterIP}, not ${serviceAddress(spec)}. Set serviceClusterIPRange to that of the API servers (--service-cluster-ip-range)`;
    return { outcome: 'invalid', message } as const;
  }
  return kubernetes.create(defaultServiceCidr(spec));
}

async function addRange(kubernetes: ClusterPort, { serviceClusterIPRanges }: ClusterSpec) {
  const current = await kubernetes.get<ServiceCidrObject>(SERVICE_CIDR_REF);
  const [only, ...others] = current?.spec.cidrs ?? [];
  if (current === undefined || only !== serviceClusterIPRanges[0] || others.length > 0) return undefined;
  return kubernetes.update({ ...current, spec: { cidrs: serviceClusterIPRanges } });
}

function notCorrected(verb: string, why: string): Kept {
  const message = `ServiceCIDR kubernetes is not corrected (${verb}): ${why}`;
  return { ...NOTHING, findings: [{ type: 'notCorrected', message, item: 'servicecidrs' }] };
}
