import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';

export const handler = deployed(loopHandler(nodePortRepair), environmentFrom);
