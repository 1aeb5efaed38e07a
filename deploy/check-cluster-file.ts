import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/spec/parse-cluster-spec.ts';
import { describeFaults, fault, type SpecFault } from '../lib/spec/spec-fault.ts';

/** Returns all faults of a cluster spec that is to be packaged, a line each; `undefined` when there is none. */
export function clusterFileFaults(file: string): string | undefined {
  if (!existsSync(file)) {
    return `${file} does not exist: correct the parameter clusterFile, or leave it out and register clusters with kbctl.`;
  }
  const result = parseClusterSpec(readFileSync(file, 'utf8'));
  const faults = 'faults' in result ? result.faults : deploymentFaults(result.spec);
  return faults.length === 0 ? undefined : describeFaults(path.basename(file), faults);
}

/** Functions refuse a file in Lambda, wherever it is. */
function deploymentFaults({ kubeconfig }: ClusterSpec): SpecFault[] {
  if (!('file' in kubeconfig) || kubeconfig.file === undefined) return [];
  return [
    fault(
      ['kubeconfig', 'file'],
      `${kubeconfig.file} is a file of this machine, and a deployed function would not find it`,
      'put it into Secrets Manager and write { secretsManager: <name> }, or into Parameter Store and { ssm: <name> }',
    ),
  ];
}
