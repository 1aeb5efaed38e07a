import { targetGroupReader } from '../lib/aws/target-group.ts';
import { doctor } from '../lib/doctor/doctor.ts';
import { doctorPartsFrom, environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(doctor, (variables) => ({
  ...environmentFrom(variables),
  ...doctorPartsFrom(variables),
  healthyTargets: targetGroupReader(),
}));
