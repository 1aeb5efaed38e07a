import { scheduled } from '../lib/dispatch/scheduled.ts';
import { clusterIpRepair } from '../lib/loops/cluster-ip-repair.ts';

export const handler = scheduled(clusterIpRepair);
