import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import type { AllocatorOfRecord, Mode } from '../spec/cluster-spec.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { isRangeKey } from '../table/ranges.ts';
import { type UnwrittenOptions, unwrittenTable } from '../table/table-views.ts';
import { CodedError } from '../util/values.ts';

/**
 * The writes that a pass may make. `all`: every write. `bookkeeping`: only writes to the table, but not to ranges from which the
 * table allocates. `none`: no write, for a stack that does not own the cluster, or for a dry run.
 */
export type Writes = 'all' | 'bookkeeping' | 'none';

interface Ports {
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
}

/** The registration has changed since the pass began, so the pass must stop writing. */
export class OlderSpecError extends CodedError<'OlderSpec'> {
  override readonly name = 'OlderSpecError';
}

export interface PortOptions extends Omit<UnwrittenOptions, 'isWithheld'> {
  readonly wouldWrite: (description: string) => void;
  /** Throws if the pass must stop writing. Called before a write if no call was made in the last 10 s. */
  readonly confirmWrites: () => Promise<void>;
}

export function writesOf(mode: Mode): Writes {
  return mode === 'observe' ? 'bookkeeping' : 'all';
}

/** A confirmation is valid for this long. A pass may make a thousand writes, or list objects for half a minute before a write. */
const CONFIRMED_FOR_MS = 10_000;

/** Returns ports that only report forbidden writes, and call `confirmWrites` before allowed writes to ranges and the cluster. */
export function portsFor(
  writes: Writes,
  ports: Ports,
  allocator: AllocatorOfRecord,
  { wouldWrite, confirmWrites, ...options }: PortOptions,
): Ports {
  const { table, kubernetes } = confirmedPorts(ports, confirmWrites, options.nowMs);
  if (writes === 'all') return { table, kubernetes };
  const isWithheld = (key: string) => writes === 'none' || (allocator === 'table' && isRangeKey(key));
  return {
    // The save of a usage bitmap is not reported, because the bitmap only informs users.
    table: unwrittenTable(table, { ...options, isWithheld, ...(allocator === 'table' && { wouldWrite }) }),
    kubernetes: withholdWrites(kubernetes, wouldWrite),
  };
}

/** Returns ports that call `confirmWrites` before writes to ranges and the cluster. Other items of the table only record facts. */
function confirmedPorts({ table, kubernetes }: Ports, confirmWrites: () => Promise<void>, nowMs: () => number): Ports {
  let confirmedAtMs = Number.NEGATIVE_INFINITY;
  let isConfirmed = Promise.resolve();
  const confirm = () => {
    if (nowMs() - confirmedAtMs >= CONFIRMED_FOR_MS) {
      confirmedAtMs = nowMs();
      // After a refusal, no later write of the pass is allowed.
      isConfirmed = isConfirmed.then(confirmWrites);
    }
    return isConfirmed;
  };
  const confirmed = <Args extends readonly unknown[], Result>(
    write: (...args: Args) => Promise<Result>,
    isCovered: (...args: Args) => boolean = () => true,
  ) => {
    return async (...args: Args) => {
      if (isCovered(...args)) await confirm();
      return write(...args);
    };
  };
  const ofRange = ({ key }: { readonly key: string }) => isRangeKey(key);
  return {
    table: { ...table, put: confirmed(table.put, ofRange) },
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
