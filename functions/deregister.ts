import { deregistration } from '../lib/dispatch/deregistration.ts';
import { deployed } from '../lib/environment/process-environment.ts';

export const handler = deployed(deregistration());
