import type { ClusterSpec, Loop, Mode } from '../cluster/cluster-spec.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { ClusterPort, ControlPlane, HostResolver, Prober } from '../kubernetes/cluster-port.ts';
import type { KeyValueTable, TableValue } from '../table/key-value-table.ts';

/** Everything one pass may use. Ports end with the pass's deadline, and refuse or withhold what the pass may not write (`writes.ts`). */
export interface PassContext {
  readonly spec: ClusterSpec;
  /** The spec's generation at which its ranges or its allocator last changed; stamped on ranges. */
  readonly rangesGeneration: number;
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
  readonly probe: Prober;
  readonly controlPlane: ControlPlane;
  readonly resolveHost: HostResolver;
  readonly passId: string;
  readonly nowMs: () => number;
  /** The time between the passes of the loop at present: its interval, or more while the cluster gives no answer. */
  readonly triesEveryMs: number;
  /** Starts a part of the pass's time. Cancel it when it is no longer needed, or the process waits for its end. */
  readonly startBudget: (ms: number) => { readonly signal: AbortSignal; readonly cancel: () => void };
  /** Waits for what the API server does by itself a moment later. The pass's deadline ends it. */
  readonly pause: (ms: number) => Promise<void>;
  /**
   * `observe` when any pass has only observed since the last enforcing one that succeeded: what was counted before is
   * stale. Absent on the first pass.
   */
  readonly previousMode?: Mode;
  /** When a pass of the loop succeeded last. */
  readonly lastSuccessAtMs?: number;
  /** What the loop's last pass returned as `state`. */
  readonly state: TableValue | undefined;
}

/** What a pass did and found. Expected problems are in `findings` and `errors`; a throw ends the pass as failed. */
export interface PassReport {
  /** One line for each write that was made: `created namespace kube-system`. */
  readonly changes: readonly string[];
  /** What the ports withheld, where there is more to report than they know. */
  readonly wouldWrite?: readonly string[];
  readonly findings: readonly Finding[];
  /** Findings beyond those: too many to list each. */
  readonly unlisted?: ReadonlyMap<FindingType, number>;
  /** Figures for the run record and the log line: `services`, `allocated`, `leasesHeld` ... */
  readonly counts: Readonly<Record<string, number>>;
  /** Failures that did not stop the pass (one namespace of four). Any makes the pass a failed one. */
  readonly errors: readonly Error[];
  /** Kept in the run record for the loop's next pass. */
  readonly state?: TableValue;
}

export interface LoopDefinition {
  readonly id: Loop;
  readonly run: (context: PassContext) => Promise<PassReport>;
}
