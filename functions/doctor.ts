import { doctor } from '../lib/doctor/doctor.ts';
import { doctorEnvironmentFrom } from '../lib/environment/doctor-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';

export const handler = deployed(doctor(() => doctorEnvironmentFrom(process.env)));
