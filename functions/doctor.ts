import { doctor } from '../lib/doctor/doctor.ts';

export const handler = doctor();
