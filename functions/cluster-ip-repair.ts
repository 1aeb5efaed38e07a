import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';
import { environmentFrom } from '../lib/runtime/cluster-environment.ts';
import { deployed } from '../lib/runtime/process-environment.ts';

export const handler = deployed(loopHandler(clusterIpRepair), environmentFrom);
