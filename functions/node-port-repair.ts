import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';
import { environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(loopHandler(nodePortRepair), environmentFrom);
