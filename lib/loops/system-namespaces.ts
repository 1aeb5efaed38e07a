import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import type { LoopDefinition, PassContext, PassReport } from './pass.ts';

/** Creates missing namespaces, as `pkg/controlplane/controller/systemnamespaces/system_namespaces_controller.go` does. */
export const systemNamespaces: LoopDefinition = { id: 'system-namespaces', run };

async function run({ spec, kubernetes }: PassContext): Promise<PassReport> {
  const changes: string[] = [];
  const errors: ClusterError[] = [];
  for (const name of spec.systemNamespaces) {
    try {
      if (await ensureNamespace(kubernetes, name)) changes.push(`created namespace ${name}`);
    } catch (error) {
      if (!(error instanceof ClusterError)) throw error;
      const message = `unable to create required kubernetes system Namespace ${name}: ${error.message}`;
      errors.push(new ClusterError(error.code, message, { cause: error }));
    }
  }
  return { changes, findings: [], counts: { namespaces: spec.systemNamespaces.length }, errors };
}

async function ensureNamespace(kubernetes: ClusterPort, name: string): Promise<boolean> {
  if ((await kubernetes.get({ kind: 'Namespace', name })) !== undefined) return false;
  const namespace: KubernetesObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const result = await kubernetes.create(namespace);
  if ('message' in result) throw new ClusterError('Rejected', result.message);
  return result.outcome === 'created';
}
