import type { AllocatorError } from '../allocator/errors.ts';
import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import { CodedError } from '../cluster/coded-error.ts';
import { ClusterError, type ServiceSelection } from '../kubernetes/cluster-port.ts';
import type { AuditLedger } from '../repair/audit.ts';
import type { RangeWords } from '../repair/claim-findings.ts';
import type { Ledger, MakeRange, Walk } from '../repair/walk.ts';
import { TableError } from '../table/errors.ts';

/** What distinguishes the repair of cluster IPs from that of node ports. */
export interface RepairKind<Item> {
  readonly loop: Loop;
  readonly makeRange: MakeRange<Item>;
  readonly errors: RepairErrorWords;
  readonly words: RangeWords;
  readonly makeAuditLedger: (range: string) => AuditLedger<Item> | AllocatorError;
  /**
   * Services that a pass reads, by the side that allocates. Where it may free an item, the selection leaves out only what the
   * walk would skip: a Service that was stored past the API server's validation may have what its type does not.
   */
  readonly listed: Readonly<Record<ClusterSpec['allocator'], ServiceSelection>>;
  /** Ledgers are in the order of the spec's ranges. */
  readonly startWalk: (ledgers: readonly Ledger<Item>[]) => Walk;
}

/** The original's errors: how they begin, or whole. */
export interface RepairErrorWords {
  readonly cannotRead: string;
  readonly cannotRestore: (range: string, why: string) => string;
  readonly cannotCreate: (range: string, why: string) => string;
  readonly cannotList: string;
  readonly cannotSave: string;
}

/** Returns the error in the original's words, with its own code. */
export function reworded(beginning: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`${beginning}: ${String(error)}`, { cause: error });
  const message = `${beginning}: ${error.message}`;
  if (error instanceof TableError) return new TableError(error.code, message, { cause: error });
  if (error instanceof ClusterError) return new ClusterError(error.code, message, { cause: error });
  if (error instanceof CodedError) return new CodedError(error.code, message, { cause: error });
  return new Error(message, { cause: error });
}
