import { ipRangeOf } from '../allocator/ip-range.ts';
import { parseCidr } from '../allocator/network.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { rangesOf } from '../cluster/spec-ranges.ts';
import { clusterIpWalk } from '../repair/cluster-ip-walk.ts';
import type { MakeRange } from '../repair/ledger.ts';
import { networkLedger } from '../repair/network-claims.ts';
import type { LoopDefinition } from './pass.ts';
import type { RepairJob, RepairWords } from './repair-job.ts';
import { repairPass } from './repair-pass.ts';

/** Repairs, or audits, the cluster IPs: one family or two. */
export const clusterIpRepair: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: (context) => repairPass(clusterIpJob(context.spec, ipRange), context),
};

/** The same pass, which also replaces what is corrupt: for a person who asks for it. */
export const clusterIpRebuild: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: (context) => repairPass(clusterIpJob(context.spec, ipRange), context, { rebuild: true }),
};

/** The words of `pkg/registry/core/service/ipallocator/controller/repair.go`. */
const WORDS: RepairWords = {
  item: 'cluster IP',
  range: 'service CIDR',
  cannotRead: 'unable to refresh the service IP block',
  cannotList: 'unable to refresh the service IP block',
  cannotRestore: (range, why) =>
    `unable to rebuild allocator from snapshots for family:${familyOf(range)} with error:${why}`,
  cannotCreate: (range, why) => `unable to create CIDR range for family ${familyOf(range)}: ${why}`,
  cannotSave: 'unable to persist the updated service IP allocations',
};

/** `makeRange` is an argument so that tests can have an allocator that fails. */
export function clusterIpJob(spec: ClusterSpec, makeRange: MakeRange<string>): RepairJob<string> {
  return {
    loop: 'cluster-ip-repair',
    ranges: rangesOf(spec).filter(({ loop }) => loop === 'cluster-ip-repair'),
    words: WORDS,
    makeRange,
    makeAuditLedger: (range) => networkLedger(range, makeRange),
    startWalk: clusterIpWalk,
  };
}

/** Repairs allocate what Services claim, never an address of their own choice: there is nothing to pick. */
function ipRange(cidr: string): ReturnType<MakeRange<string>> {
  return ipRangeOf(cidr, () => 0);
}

function familyOf(range: string): string {
  return parseCidr(range)?.family ?? 'unknown';
}
