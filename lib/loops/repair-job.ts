import type { AllocatorError } from '../allocator/errors.ts';
import type { Loop } from '../cluster/cluster-spec.ts';
import type { RangeKey } from '../cluster/spec-ranges.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import type { AuditLedger } from '../repair/audit.ts';
import type { RangeWords } from '../repair/compare.ts';
import { RepairError } from '../repair/errors.ts';
import type { Ledger, MakeRange, Walk } from '../repair/ledger.ts';
import { TableError } from '../table/errors.ts';

/** The original's errors: how they begin, or whole. */
export interface RepairWords extends RangeWords {
  readonly cannotRead: string;
  readonly cannotRestore: (range: string, why: string) => string;
  readonly cannotCreate: (range: string, why: string) => string;
  readonly cannotList: string;
  readonly cannotSave: string;
}

/** What tells the repair of cluster IPs from that of node ports. */
export interface RepairJob<Item> {
  readonly loop: Loop;
  /** Where each range is kept, and its text in the spec. */
  readonly ranges: readonly { readonly key: RangeKey; readonly configured: string }[];
  readonly words: RepairWords;
  readonly makeRange: MakeRange<Item>;
  readonly makeAuditLedger: (range: string) => AuditLedger<Item> | AllocatorError;
  /** Ledgers are in the order of `ranges`. */
  readonly startWalk: (ledgers: readonly Ledger<Item>[]) => Walk;
}

/** The error in the original's words, with the code of what it is about. */
export function reworded(beginning: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`${beginning}: ${String(error)}`, { cause: error });
  const message = `${beginning}: ${error.message}`;
  if (error instanceof TableError) return new TableError(error.code, message, { cause: error });
  if (error instanceof ClusterError) return new ClusterError(error.code, message, { cause: error });
  if (error instanceof RepairError) return new RepairError(error.code, message, { cause: error });
  return new Error(message, { cause: error });
}

/** Figures of the ranges for the run record: those of the first by their names, those of a second as `secondary...`. */
export function figures(ranges: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const [primary = {}, secondary = {}] = ranges;
  const named = Object.entries(secondary).map(([name, figure]) => [`secondary${capitalised(name)}`, figure] as const);
  return { ...primary, ...Object.fromEntries(named) };
}

function capitalised(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
