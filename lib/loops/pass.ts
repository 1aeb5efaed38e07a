import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { ClusterPort, ControlPlane, LookUp, Prober } from '../kubernetes/cluster-port.ts';
import type { KeyValueTable, TableValue } from '../table/key-value-table.ts';
import type { RunRecord } from '../table/run-records.ts';

/**
 * Everything that one pass may use. Ports end at the pass's deadline, and refuse or withhold writes that the pass may
 * not make (`writes.ts`).
 */
export interface PassContext {
  readonly spec: ClusterSpec;
  /** The generation of the spec in which its ranges or its allocator last changed; stamped on ranges. */
  readonly rangesGeneration: number;
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
  readonly probe: Prober;
  readonly controlPlane: ControlPlane;
  readonly lookUp: LookUp;
  readonly passId: string;
  readonly nowMs: () => number;
  /** The present time between the passes of the loop: its interval, or more while the cluster gives no answer. */
  readonly triesEveryMs: number;
  /**
   * Starts a deadline within that of the pass. Cancel it when it is no longer needed, or the process waits for its end.
   */
  readonly startDeadline: (ms: number) => { readonly signal: AbortSignal; readonly cancel: () => void };
  /** Waits for a short reaction of the API server. The pass's deadline ends it. */
  readonly pause: (ms: number) => Promise<void>;
  /** The record of the loop's last pass; `undefined` before the first one. */
  readonly previous: Pick<RunRecord, 'observed' | 'lastSuccessAtMs' | 'state'> | undefined;
}

/**
 * The changes and findings of a pass. Expected problems are in `findings` and `errors`; a throw ends the pass as
 * failed.
 */
export interface PassReport {
  /** One line per write: `created namespace kube-system`. */
  readonly changes: readonly string[];
  /** Withheld writes, if there is more to report than the ports know. */
  readonly wouldWrite?: readonly string[];
  readonly findings: readonly Finding[];
  /** The number of further findings by type. */
  readonly unlisted?: ReadonlyMap<FindingType, number>;
  /** Figures for the run record and the log line: `services`, `allocated`, `activeLeases` ... */
  readonly counts: Readonly<Record<string, number>>;
  /** Failures that did not stop the pass (one namespace of four). Any of them makes the pass a failed one. */
  readonly errors: readonly Error[];
  /** The state that the run record keeps for the loop's next pass. */
  readonly state?: TableValue;
}

export interface LoopDefinition {
  readonly id: Loop;
  readonly run: (context: PassContext) => Promise<PassReport>;
}
