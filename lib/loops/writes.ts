import type { AllocatorOfRecord, Mode } from '../cluster/cluster-spec.ts';
import { CodedError } from '../cluster/values.ts';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { isRangeKey } from '../table/ranges.ts';
import { type UnwrittenOptions, unwrittenTable } from '../table/unwritten-table.ts';

/**
 * The writes that a pass may make. `all`: every write. `bookkeeping`: only writes to the table, except to ranges from which
 * the table allocates. `none`: no write, for a stack that does not own the cluster, or for a dry run.
 */
export type Writes = 'all' | 'bookkeeping' | 'none';

interface Ports {
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
}

/** The reason why a pass must stop writing: the registration has changed since the pass began. */
export class OlderSpecError extends CodedError<'OlderSpec'> {
  override readonly name = 'OlderSpecError';
}

export interface PortOptions extends Omit<UnwrittenOptions, 'isWithheld'> {
  readonly wouldWrite: (description: string) => void;
  /** Throws if the pass must stop writing. Called once, before the first write. */
  readonly confirmWrites: () => Promise<void>;
}

export function writesOf(mode: Mode): Writes {
  return mode === 'observe' ? 'bookkeeping' : 'all';
}

/**
 * Returns ports that enforce which writes the pass may make, so that loops need no checks of their own. The ports withhold
 * and report the writes that the pass may not make. Before the first write, they confirm that the pass may still write.
 */
export function portsFor(
  writes: Writes,
  ports: Ports,
  allocator: AllocatorOfRecord,
  { wouldWrite, confirmWrites, ...options }: PortOptions,
): Ports {
  const { table, kubernetes } = confirmedPorts(ports, confirmWrites);
  if (writes === 'all') return { table, kubernetes };
  const isWithheld = (key: string) => writes === 'none' || (allocator === 'table' && isRangeKey(key));
  return {
    // A withheld save of a usage bitmap is not reported, because it only informs users.
    table: unwrittenTable(table, { ...options, isWithheld, ...(allocator === 'table' && { wouldWrite }) }),
    kubernetes: withholdWrites(kubernetes, wouldWrite),
  };
}

/**
 * Returns ports that call `confirmWrites` before the first write of a range or to the cluster. Writes of leases need no
 * confirmation, because they only record what the pass observed.
 */
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
