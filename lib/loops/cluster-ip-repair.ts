import { ipRangeOf } from '../allocator/ip-range.ts';
import { parseCidr } from '../allocator/network.ts';
import { networkLedger } from '../repair/audit.ts';
import { CLUSTER_IP_WORDS, clusterIpWalk } from '../repair/cluster-ips.ts';
import type { MakeRange } from '../repair/walk.ts';
import type { LoopDefinition } from './pass.ts';
import { type RepairKind, repairPass } from './repair.ts';

/** Repairs, or audits, the cluster IPs: one family or two. */
export const clusterIpRepair: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: (context) => repairPass(clusterIps(ipRange), context),
};

/** The same pass, which also replaces a corrupt range: for a person who asks for it. */
export const clusterIpRebuild: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: (context) => repairPass(clusterIps(ipRange), context, true),
};

/** `makeRange` is an argument so that tests can have an allocator that fails. */
export function clusterIps(makeRange: MakeRange<string>): RepairKind<string> {
  return {
    loop: 'cluster-ip-repair',
    words: CLUSTER_IP_WORDS,
    errors: {
      cannotRead: 'unable to refresh the service IP block',
      cannotList: 'unable to refresh the service IP block',
      cannotRestore: (range, why) =>
        `unable to rebuild allocator from snapshots for family:${familyOf(range)} with error:${why}`,
      cannotCreate: (range, why) => `unable to create CIDR range for family ${familyOf(range)}: ${why}`,
      cannotSave: 'unable to persist the updated service IP allocations',
    },
    makeRange,
    makeAuditLedger: (range) => networkLedger(range, makeRange),
    startWalk: clusterIpWalk,
  };
}

/** A repair allocates what Services claim, never an address of its own choice: there is nothing to pick. */
function ipRange(cidr: string): ReturnType<MakeRange<string>> {
  return ipRangeOf(cidr, () => 0);
}

function familyOf(range: string): string {
  return parseCidr(range)?.family ?? 'unknown';
}
