import { createDefaultServiceCidr } from '../api-servers/default-service-cidr.ts';
import type { Finding } from '../cluster/finding.ts';
import { SERVICE_CIDR_REF, type ServiceCidrObject } from '../cluster/published-objects.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { isDefault, type ServiceCidr } from '../kubernetes/service-cidrs.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

interface Kept {
  readonly changes: readonly string[];
  readonly findings: readonly Finding[];
}

const NOTHING: Kept = { changes: [], findings: [] };

/**
 * Maintains the ServiceCIDR `kubernetes` for API servers that do not (`pkg/controlplane/controller/defaultservicecidr`):
 * creates it if it is missing, and adds the second range of the spec to the first. Changes no other range. Changes nothing
 * if the ServiceCIDR is being deleted.
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
    const result = await (current === undefined
      ? createDefaultServiceCidr(kubernetes, spec)
      : addRange(kubernetes, spec));
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
