import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../lib/spec/parse-cluster-spec.ts';
import { describeFaults, fault, type SpecFault } from '../lib/spec/spec-fault.ts';

/** All that is wrong with a cluster.yml that is to be packaged, as a person reads it. Nothing, too, without the file. */
export function clusterFileFaults(file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const result = parseClusterSpec(readFileSync(file, 'utf8'));
  const faults = 'faults' in result ? result.faults : deploymentFaults(result.spec);
  return faults.length === 0 ? undefined : describeFaults(path.basename(file), faults);
}

/** What is right on a developer's machine alone. What is on a mounted file system has an absolute path. */
function deploymentFaults({ kubeconfig }: ClusterSpec): SpecFault[] {
  if (!('file' in kubeconfig) || kubeconfig.file === undefined || path.isAbsolute(kubeconfig.file)) return [];
  return [
    fault(
      ['kubeconfig', 'file'],
      `${kubeconfig.file} is not packaged, and a deployed function would not find it`,
      'put it into Secrets Manager and write { secretsManager: <name> }, or into Parameter Store and { ssm: <name> }',
    ),
  ];
}
