import { deregistration } from '../lib/deregister/deregistration.ts';
import { environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(deregistration(), environmentFrom);
