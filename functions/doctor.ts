import { targetGroupReader } from '../lib/aws/target-group.ts';
import { doctor } from '../lib/doctor/doctor.ts';
import { doctorEnvironmentFrom, environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';

export const handler = deployed(
  doctor(() => doctorEnvironmentFrom(process.env)),
  (variables) => ({ ...environmentFrom(variables), healthyTargets: targetGroupReader() }),
);
