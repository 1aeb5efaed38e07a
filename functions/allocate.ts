import { allocation } from '../lib/allocate/allocation.ts';
import { deployed, tableEnvironmentFrom } from '../lib/runtime/process-environment.ts';

export const handler = deployed(allocation(), tableEnvironmentFrom);
