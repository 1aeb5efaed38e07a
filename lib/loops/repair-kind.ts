import { ClusterError, type ServiceSelection } from '../kubernetes/cluster-port.ts';
import type { RangeWords } from '../repair/claim-findings.ts';
import type { ClaimedRange, EnterClaims } from '../repair/claims.ts';
import type { ClusterSpec, Loop } from '../spec/cluster-spec.ts';
import { TableError } from '../table/key-value-table.ts';
import { CodedError } from '../util/values.ts';

/** The differences between the repairs of cluster IPs and of node ports. */
export interface RepairKind {
  readonly loop: Loop;
  readonly errors: RepairErrorWords;
  readonly words: RangeWords;
  /**
   * The Services that a pass lists, depending on the allocator. A pass that can free items must list every Service that can have
   * claims: a Service that bypassed the validation of the API server may have items that its type does not allow.
   */
  readonly listed: Readonly<Record<ClusterSpec['allocator'], ServiceSelection>>;
  /** `ranges` are in the order of the spec. */
  readonly enterClaims: (ranges: readonly ClaimedRange[]) => EnterClaims;
}

/** Upstream's error messages. `cannotRead`, `cannotList` and `cannotSave` are only the beginnings of messages. */
export interface RepairErrorWords {
  readonly cannotRead: string;
  readonly cannotRestore: (range: string, why: string) => string;
  readonly cannotCreate: (range: string, why: string) => string;
  readonly cannotList: string;
  readonly cannotSave: string;
}

/** Returns the error with upstream's message before its own, and with its own code. */
export function reworded(beginning: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`${beginning}: ${String(error)}`, { cause: error });
  const message = `${beginning}: ${error.message}`;
  if (error instanceof TableError) return new TableError(error.code, message, { cause: error });
  if (error instanceof ClusterError) return new ClusterError(error.code, message, { cause: error });
  if (error instanceof CodedError) return new CodedError(error.code, message, { cause: error });
  return new Error(message, { cause: error });
}
