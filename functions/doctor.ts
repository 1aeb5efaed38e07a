import { targetGroupReader } from '../lib/aws/target-group.ts';
import { doctor } from '../lib/doctor/doctor.ts';
import { doctorPartsFrom, environmentFrom } from '../lib/runtime/cluster-environment.ts';
import type { InvocationContext } from '../lib/runtime/invocation.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(
  // Each invocation has its own reader of kubeconfigs, because a reader caches the credentials of roles.
  (event, { environment, ...context }: InvocationContext) =>
    doctor(event, { ...context, environment: { ...environment, ...doctorPartsFrom(process.env) } }),
  (variables) => ({ ...environmentFrom(variables), healthyTargets: targetGroupReader() }),
);
