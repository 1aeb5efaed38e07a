import { admission } from '../lib/admission/admission.ts';
import { deployed, tableEnvironmentFrom } from '../lib/runtime/process-environment.ts';

export const handler = deployed(admission(), tableEnvironmentFrom);
