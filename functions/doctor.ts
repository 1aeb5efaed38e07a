import { doctor } from '../lib/doctor/doctor.ts';
import { deployed, doctorEnvironmentFrom } from '../lib/environment/process-environment.ts';

export const handler = deployed(doctor(() => doctorEnvironmentFrom(process.env)));
