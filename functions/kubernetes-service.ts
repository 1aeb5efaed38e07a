import { targetGroupReader } from '../lib/aws/target-group.ts';
import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';
import { environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(loopHandler(kubernetesService), (variables) => ({
  ...environmentFrom(variables),
  healthyTargets: targetGroupReader(),
}));
