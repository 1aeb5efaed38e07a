import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { parseClusterSpec } from '../../lib/spec/parse-cluster-spec.ts';
import { describeFaults } from '../../lib/spec/spec-fault.ts';

/** The spec that a text holds. */
export function specIn(text: string): ClusterSpec {
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new Error(describeFaults('the spec of the test', result.faults));
  return result.spec;
}
