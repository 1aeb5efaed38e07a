import { loopHandler, type Summary } from '../lib/dispatch/dispatch.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../lib/loops/pass.ts';
import { systemNamespaces } from '../lib/loops/system-namespaces.ts';
import type { Handler } from '../lib/runtime/invocation.ts';
import type { Loop } from '../lib/spec/cluster-spec.ts';

/** The loops in the order of their first invocations: namespaces before their objects, ranges before allocations. */
export const LOOP_DEFINITIONS: Readonly<Record<Loop, LoopDefinition>> = {
  'system-namespaces': systemNamespaces,
  'cluster-ip-repair': clusterIpRepair,
  'node-port-repair': nodePortRepair,
  'kubernetes-service': kubernetesService,
};

export const LOOP_HANDLERS = Object.fromEntries(
  Object.entries(LOOP_DEFINITIONS).map(([id, loop]) => [id, loopHandler(loop)]),
) as Readonly<Record<Loop, Handler<Summary>>>;
