import type { Loop } from '../cluster/cluster-spec.ts';
import { clusterIpRepair } from '../loops/cluster-ip-repair.ts';
import { kubernetesService } from '../loops/kubernetes-service.ts';
import { nodePortRepair } from '../loops/node-port-repair.ts';
import { systemNamespaces } from '../loops/system-namespaces.ts';
import type { Handler } from '../runtime/invocation.ts';
import { loopHandler, type Summary } from './dispatch.ts';

/**
 * Every loop's handler, for a process that runs all of them, in the order of the first invocations: namespaces before
 * their objects, ranges before allocations.
 */
export const LOOP_HANDLERS: Readonly<Record<Loop, Handler<Summary>>> = {
  'system-namespaces': loopHandler(systemNamespaces),
  'cluster-ip-repair': loopHandler(clusterIpRepair),
  'node-port-repair': loopHandler(nodePortRepair),
  'kubernetes-service': loopHandler(kubernetesService),
};
