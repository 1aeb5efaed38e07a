import { admission } from '../lib/admission/admission.ts';

export const handler = admission();
