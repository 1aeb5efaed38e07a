import { portRangeOf } from '../allocator/port-range.ts';
import { isRefused } from '../allocator/refusal.ts';
import { auditedRange } from '../repair/audit.ts';
import type { MakeRange } from '../repair/claims.ts';
import { NODE_PORT_WORDS, nodePortClaims } from '../repair/node-ports.ts';
import type { LoopDefinition } from './pass.ts';
import { repairPass } from './repair.ts';
import type { RepairKind } from './repair-kind.ts';

export const nodePortRepair: LoopDefinition = {
  id: 'node-port-repair',
  run: (context) => repairPass(nodePorts(portRange), context),
};

export function nodePorts(makeRange: MakeRange): RepairKind {
  return {
    loop: 'node-port-repair',
    words: NODE_PORT_WORDS,
    errors: {
      cannotRead: 'unable to refresh the port allocations',
      cannotList: 'unable to refresh the port block',
      cannotRestore: (_range, why) => `unable to rebuild allocator from snapshot: ${why}`,
      cannotCreate: (_range, why) => `unable to create port allocator: ${why}`,
      cannotSave: 'unable to persist the updated port allocations',
    },
    makeRange,
    makeAuditedRange: (text) => {
      const ports = makeRange(text);
      return isRefused(ports) ? ports : auditedRange(ports);
    },
    listed: { apiserver: 'withNodePorts', table: 'all' },
    enterClaims: nodePortClaims,
  };
}

/** The allocator chooses no items, because a repair allocates only items that Services claim. */
function portRange(text: string): ReturnType<MakeRange> {
  return portRangeOf(text, () => 0);
}
