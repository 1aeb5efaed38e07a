import { allocation } from '../lib/allocate/allocation.ts';
import { deployed, tableEnvironmentFrom } from '../lib/environment/process-environment.ts';

export const handler = deployed(allocation(), tableEnvironmentFrom);
