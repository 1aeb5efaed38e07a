import type { Loop } from '../cluster/cluster-spec.ts';
import type { FindingType } from '../cluster/finding.ts';

/** Metric namespace and service name. */
export const METRIC_NAMESPACE = 'kube-bootstrap-controller';

/** The first four are the original's (`pkg/registry/core/service/{ipallocator,portallocator}/controller/metrics.go`). */
export type CounterName =
  | 'apiserver_clusterip_repair_ip_errors_total'
  | 'apiserver_clusterip_repair_reconcile_errors_total'
  | 'apiserver_nodeport_repair_port_errors_total'
  | 'apiserver_nodeport_repair_reconcile_errors_total'
  | 'findings'
  | 'passes'
  | 'failures';

export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  readonly name: CounterName;
  readonly labels: Labels;
}

const PORT_ERRORS: ReadonlySet<FindingType> = new Set([
  'leak',
  'repair',
  'full',
  'outOfRange',
  'duplicate',
  'unknown',
] as const);
const IP_ERRORS: ReadonlySet<FindingType> = new Set([...PORT_ERRORS, 'invalid'] as const);

/** The counter that a finding adds to: the original's where it has one, else `findings`. */
export function findingCounter(loop: Loop, type: FindingType): Counter {
  const labels = { type };
  if (loop === 'cluster-ip-repair' && IP_ERRORS.has(type)) {
    return { name: 'apiserver_clusterip_repair_ip_errors_total', labels };
  }
  if (loop === 'node-port-repair' && PORT_ERRORS.has(type)) {
    return { name: 'apiserver_nodeport_repair_port_errors_total', labels };
  }
  return { name: 'findings', labels };
}

/** The original's counter of failed passes, for the loops where it has one. */
export function failedPassCounter(loop: Loop): CounterName | undefined {
  switch (loop) {
    case 'cluster-ip-repair':
      return 'apiserver_clusterip_repair_reconcile_errors_total';
    case 'node-port-repair':
      return 'apiserver_nodeport_repair_reconcile_errors_total';
    case 'system-namespaces':
    case 'kubernetes-service':
      return undefined;
  }
}
