import { targetGroupReader } from '../lib/aws/target-group.ts';
import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';

export const handler = deployed(loopHandler(kubernetesService), (variables) => ({
  ...environmentFrom(variables),
  healthyTargets: targetGroupReader(),
}));
