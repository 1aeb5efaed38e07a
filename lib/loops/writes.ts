import type { AllocatorOfRecord, Mode } from '../cluster/cluster-spec.ts';
import { CodedError } from '../cluster/values.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { isRangeKey } from '../table/ranges.ts';
import { type UnwrittenOptions, unwrittenTable } from '../table/unwritten-table.ts';

/**
 * What a pass may write. `all`: everything. `bookkeeping`: in the table, all but ranges that the table allocates; nothing in
 * the cluster. `none`: nothing, as a stack that does not own the cluster, or a dry run.
 */
export type Writes = 'all' | 'bookkeeping' | 'none';

interface Ports {
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
}

/** Why a pass may no longer write: the registration is not the one that it began with. */
export class OlderSpecError extends CodedError<'OlderSpec'> {
  override readonly name = 'OlderSpecError';
}

export interface PortOptions extends Omit<UnwrittenOptions, 'isWithheld'> {
  readonly wouldWrite: (description: string) => void;
  /** Throws if the pass may no longer write. Called once, before its first write. */
  readonly confirmWrites: () => Promise<void>;
}

export function writesOf(mode: Mode): Writes {
  return mode === 'observe' ? 'bookkeeping' : 'all';
}

/**
 * Returns ports that withhold and report every write that the pass may not make, and confirm before the first write that
 * the pass may still make any: loops check neither.
 */
export function portsFor(
  writes: Writes,
  ports: Ports,
  allocator: AllocatorOfRecord,
  { wouldWrite, confirmWrites, ...options }: PortOptions,
): Ports {
  const { table, kubernetes } = confirmedPorts(ports, confirmWrites);
  if (writes === 'all') return { table, kubernetes };
  const isWithheld = (key: string) => writes === 'none' || (allocator === 'table' && key.startsWith('ranges/'));
  return {
    // A usage bitmap of what API servers allocate is not worth a report.
    table: unwrittenTable(table, { ...options, isWithheld, ...(allocator === 'table' && { wouldWrite }) }),
    kubernetes: withholdWrites(kubernetes, wouldWrite),
  };
}

/** Leases need no confirmation: they record what the pass observed, and each tick writes them. */
function confirmedPorts({ table, kubernetes }: Ports, confirmWrites: () => Promise<void>): Ports {
  let isConfirmed: Promise<void> | undefined;
  const confirm = () => {
    isConfirmed ??= confirmWrites();
    return isConfirmed;
  };
  const confirmRange = async (key: string) => (isRangeKey(key) ? confirm() : undefined);
  const confirmed = <Args extends readonly unknown[], Result>(write: (...args: Args) => Promise<Result>) => {
    return async (...args: Args) => {
      await confirm();
      return write(...args);
    };
  };
  return {
    table: {
      ...table,
      put: async (item, previous) => {
        await confirmRange(item.key);
        return table.put(item, previous);
      },
      delete: async (previous) => {
        await confirmRange(previous.key);
        return table.delete(previous);
      },
    },
    kubernetes: {
      ...kubernetes,
      create: confirmed(kubernetes.create),
      update: confirmed(kubernetes.update),
      mergePatch: async (ref, patch) => {
        await confirm();
        return kubernetes.mergePatch(ref, patch);
      },
      delete: confirmed(kubernetes.delete),
    },
  };
}
