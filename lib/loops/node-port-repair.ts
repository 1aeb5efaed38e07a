import { NODE_PORT_WORDS, nodePortClaims } from '../repair/node-ports.ts';
import type { LoopDefinition } from './pass.ts';
import { repairPass } from './repair.ts';
import type { RepairKind } from './repair-gather.ts';

/* The repair of node ports. A pass has the four steps of repair.ts. */
export const NODE_PORTS: RepairKind = {
  loop: 'node-port-repair',
  words: NODE_PORT_WORDS,
  errors: {
    cannotRead: 'unable to refresh the port allocations',
    cannotList: 'unable to refresh the port block',
    cannotRestore: (_range, why) => `unable to rebuild allocator from snapshot: ${why}`,
    cannotCreate: (_range, why) => `unable to create port allocator: ${why}`,
    cannotSave: 'unable to persist the updated port allocations',
  },
  listed: { apiserver: 'withNodePorts', table: 'all' },
  enterClaims: nodePortClaims,
};

export const nodePortRepair: LoopDefinition = {
  id: 'node-port-repair',
  run: (context) => repairPass(NODE_PORTS, context),
};
