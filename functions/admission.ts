import { admission } from '../lib/admission/admission.ts';
import { deployed } from '../lib/environment/process-environment.ts';

export const handler = deployed(admission());
