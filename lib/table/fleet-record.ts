import { LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import { fieldsIn, isList } from './item-values.ts';
import type { Item, KeyValueTable } from './key-value-table.ts';

/** No cluster can have this name. */
const FLEET = '#fleet';
const SCHEMA = 1;
/** Far below the size of an item. Where more clusters do not answer, the fault is on this side. */
const MOST_NAMES = 1_000;

/** Clusters whose API server gave no answer to the last pass of a loop, by name. */
export type UnreachableClusters = Readonly<Record<Loop, readonly string[]>>;

/** `#fleet/<stack>`: what the fleet figures of one minute leave for the ticks of the next. */
export interface FleetRecord {
  readonly unreachable: UnreachableClusters;
  /** What a write is conditional on. Absent: there is no record yet. */
  readonly item?: Item;
}

export const NO_FLEET_RECORD: FleetRecord = { unreachable: unreachableBy(() => []) };

/** An item that this version cannot read counts as none: no pass depends on it. */
export async function readFleetRecord(table: KeyValueTable, stack: string): Promise<FleetRecord> {
  const item = await table.get(FLEET, stack);
  const names = item?.schema === SCHEMA ? fieldsIn(item.value) : undefined;
  const namesOf = (loop: Loop): readonly string[] => {
    const list = names?.[loop] ?? [];
    return isList(list) ? list.filter((name) => typeof name === 'string') : [];
  };
  return { unreachable: unreachableBy(namesOf), ...(item !== undefined && { item }) };
}

/** Writes only what differs. Another writer that was faster knows as much. */
export async function writeFleetRecord(
  table: KeyValueTable,
  stack: string,
  { unreachable: before, item }: FleetRecord,
  found: UnreachableClusters,
): Promise<void> {
  const unreachable = unreachableBy((loop) => [...found[loop]].sort().slice(0, MOST_NAMES));
  if (LOOPS.every((loop) => unreachable[loop].join() === before[loop].join())) return;
  await table.put({ cluster: FLEET, key: stack, value: unreachable, schema: SCHEMA }, item);
}

export function unreachableBy(namesOf: (loop: Loop) => readonly string[]): UnreachableClusters {
  return {
    'system-namespaces': namesOf('system-namespaces'),
    'kubernetes-service': namesOf('kubernetes-service'),
    'cluster-ip-repair': namesOf('cluster-ip-repair'),
    'node-port-repair': namesOf('node-port-repair'),
  };
}
