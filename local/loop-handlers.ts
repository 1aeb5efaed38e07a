import type { Loop } from '../lib/cluster/cluster-spec.ts';
import { loopHandler, type Summary } from '../lib/dispatch/dispatch.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';
import type { Handler } from '../lib/runtime/invocation.ts';

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
