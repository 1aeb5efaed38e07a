import { AllocatorError } from '../allocator/errors.ts';
import { portRangeOf } from '../allocator/port-range.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { rangesOf } from '../cluster/spec-ranges.ts';
import { auditLedger } from '../repair/audit.ts';
import type { MakeRange } from '../repair/ledger.ts';
import { nodePortWalk } from '../repair/node-port-walk.ts';
import type { LoopDefinition } from './pass.ts';
import type { RepairJob, RepairWords } from './repair-job.ts';
import { repairPass } from './repair-pass.ts';

/** Repairs, or audits, the node ports. */
export const nodePortRepair: LoopDefinition = {
  id: 'node-port-repair',
  run: (context) => repairPass(nodePortJob(context.spec, portRange), context),
};

/** The same pass, which also replaces what is corrupt: for a person who asks for it. */
export const nodePortRebuild: LoopDefinition = {
  id: 'node-port-repair',
  run: (context) => repairPass(nodePortJob(context.spec, portRange), context, { rebuild: true }),
};

/** The words of `pkg/registry/core/service/portallocator/controller/repair.go`. */
const WORDS: RepairWords = {
  item: 'node port',
  range: 'port range',
  cannotRead: 'unable to refresh the port allocations',
  cannotList: 'unable to refresh the port block',
  cannotRestore: (_range, why) => `unable to rebuild allocator from snapshot: ${why}`,
  cannotCreate: (_range, why) => `unable to create port allocator: ${why}`,
  cannotSave: 'unable to persist the updated port allocations',
};

/** `makeRange` is an argument so that tests can have an allocator that fails. */
export function nodePortJob(spec: ClusterSpec, makeRange: MakeRange<number>): RepairJob<number> {
  return {
    loop: 'node-port-repair',
    ranges: rangesOf(spec).filter(({ loop }) => loop === 'node-port-repair'),
    words: WORDS,
    makeRange,
    makeAuditLedger: (range) => {
      const ports = makeRange(range);
      return ports instanceof AllocatorError ? ports : auditLedger(ports);
    },
    startWalk: nodePortWalk,
  };
}

/** Repairs allocate what Services claim, never a port of their own choice: there is nothing to pick. */
function portRange(text: string): ReturnType<MakeRange<number>> {
  return portRangeOf(text, () => 0);
}
