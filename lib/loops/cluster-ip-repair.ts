import { ipRangeOf } from '../allocator/ip-range.ts';
import { parseCidr } from '../allocator/network.ts';
import { SERVICE_CIDR_REF, type ServiceCidrObject } from '../endpoints/objects.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import { networkLedger } from '../repair/audit.ts';
import { CLUSTER_IP_WORDS, clusterIpWalk } from '../repair/cluster-ips.ts';
import type { MakeRange } from '../repair/walk.ts';
import type { LoopDefinition, PassContext } from './pass.ts';
import { type RepairKind, repairPass } from './repair.ts';

/** Repairs, or audits, the cluster IPs: one family or two. */
export const clusterIpRepair: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: async (context) => repairPass(clusterIps(ipRange), await withServedRanges(context)),
};

/** The same pass, which also replaces a corrupt range: for `kbctl run-once --rebuild`. */
export const clusterIpRebuild: LoopDefinition = {
  id: 'cluster-ip-repair',
  run: async (context) => repairPass(clusterIps(ipRange), await withServedRanges(context), true),
};

/**
 * Where API servers allocate, the ranges are those that the cluster serves (ServiceCIDR, Kubernetes 1.33 and later): a spec
 * with another range, such as the default one, is for `kbctl doctor` to report, and not a finding about each Service.
 */
async function withServedRanges(context: PassContext): Promise<PassContext> {
  const { spec, kubernetes } = context;
  if (spec.allocator !== 'apiserver') return context;
  const served = await kubernetes.get<ServiceCidrObject>(SERVICE_CIDR_REF).catch(unlessForbidden);
  const [primary, secondary] = served?.spec.cidrs ?? [];
  if (primary === undefined) return context;
  const serviceClusterIPRanges = secondary === undefined ? ([primary] as const) : ([primary, secondary] as const);
  return { ...context, spec: { ...spec, serviceClusterIPRanges } };
}

/** An older role of ours may not grant it. */
function unlessForbidden(error: unknown): undefined {
  if (!(error instanceof ClusterError) || error.code !== 'Forbidden') throw error;
}

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
