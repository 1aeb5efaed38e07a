import { loopHandler } from '../lib/dispatch/dispatch.ts';
import { environmentFrom } from '../lib/environment/cluster-environment.ts';
import { deployed } from '../lib/environment/process-environment.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';

export const handler = deployed(loopHandler(clusterIpRepair), environmentFrom);
