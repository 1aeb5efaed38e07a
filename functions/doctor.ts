import { targetGroupReader } from '../lib/aws/target-group.ts';
import { doctor } from '../lib/doctor/doctor.ts';
import { doctorEnvironmentFrom, environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(
  doctor(() => doctorEnvironmentFrom(process.env)),
  (variables) => ({ ...environmentFrom(variables), healthyTargets: targetGroupReader() }),
);
