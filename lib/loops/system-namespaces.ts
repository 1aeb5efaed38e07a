import type { Finding } from '../cluster/finding.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { boundedText } from '../util/values.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';

/* Creates missing namespaces (`pkg/controlplane/controller/systemnamespaces/system_namespaces_controller.go`). */
export const systemNamespaces: LoopDefinition = { id: 'system-namespaces', run };

async function run({ spec, kubernetes }: PassContext): Promise<PassReport> {
  const changes: string[] = [];
  const errors: ClusterError[] = [];
  const findings: Finding[] = [];
  for (const name of spec.systemNamespaces) {
    try {
      const namespace = await kubernetes.get({ kind: 'Namespace', name });
      if (namespace !== undefined) {
        findings.push(...terminating(namespace));
        continue;
      }
      const result = await kubernetes.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      if ('message' in result) throw new ClusterError('Rejected', result.message);
      if (result.outcome === 'created') changes.push(`created namespace ${name}`);
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      const message = `unable to create required kubernetes system Namespace ${name}: ${error.message}`;
      errors.push(new ClusterError(error.code, message, { cause: error }));
    }
  }
  return { changes, findings, counts: { namespaces: spec.systemNamespaces.length }, errors };
}

/** Returns a finding if the namespace is terminating. Clients can delete `kube-node-lease`, which then gets no node leases. */
function terminating({ metadata: { name, deletionTimestamp } }: KubernetesObject): Finding[] {
  if (deletionTimestamp === undefined) return [];
  const message = `Namespace ${name} has been terminating since ${boundedText(deletionTimestamp)}: the API server creates nothing in it. A pass creates the namespace again once it is deleted. If it stays, its conditions contain the cause: kubectl get namespace ${name} -o yaml`;
  return [{ type: 'notCorrected', message, item: name }];
}
