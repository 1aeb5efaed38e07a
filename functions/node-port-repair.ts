import { scheduled } from '../lib/dispatch/scheduled.ts';
import { nodePortRepair } from '../lib/loops/node-port-repair.ts';

export const handler = scheduled(nodePortRepair);
