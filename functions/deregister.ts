import { deregistration } from '../lib/dispatch/deregistration.ts';
import { environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';

export const handler = deployed(deregistration(), environmentFrom);
