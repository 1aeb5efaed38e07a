import type { ClusterSpec, Loop, Mode } from '../cluster/cluster-spec.ts';
import type { Finding, FindingType } from '../cluster/finding.ts';
import type { ClusterPort, HostResolver, Prober } from '../kubernetes/cluster-port.ts';
import type { KeyValueTable, TableValue } from '../table/key-value-table.ts';

/** Everything one pass may use. Ports are bound to the pass's deadline and, in `observe`, write nothing. */
export interface PassContext {
  readonly spec: ClusterSpec;
  /** Reads whether the registration still has this spec. A spec that was applied since is for the next pass. */
  readonly isSpecCurrent: () => Promise<boolean>;
  /** The spec's generation at which its ranges or its allocator last changed; stamped on ranges. */
  readonly rangesGeneration: number;
  readonly table: KeyValueTable;
  readonly kubernetes: ClusterPort;
  readonly probe: Prober;
  readonly resolveHost: HostResolver;
  readonly passId: string;
  readonly nowMs: () => number;
  /** A part of the pass's time. Cancelled when it is not needed any more, or the process waits for its end. */
  readonly startBudget: (ms: number) => { readonly signal: AbortSignal; readonly cancel: () => void };
  /** For what the API server does by itself a moment later. The pass's deadline ends it. */
  readonly pause: (ms: number) => Promise<void>;
  /**
   * `observe` when any pass has only observed since the last enforcing one that succeeded: what was counted before is
   * stale. Absent on the first pass.
   */
  readonly previousMode?: Mode;
  /** What the loop's last pass returned as `state`. */
  readonly state: TableValue | undefined;
  /** In `observe` each write is told here instead of being made. */
  readonly wouldWrite: (description: string) => void;
}

/** What a pass did and saw. Expected trouble is in `findings` and `errors`; a throw ends the pass as failed. */
export interface PassReport {
  /** One line for each write made (`created namespace kube-system`), as a person would say it. */
  readonly changes: readonly string[];
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

/** One run of one loop for one cluster. */
export interface LoopDefinition {
  readonly id: Loop;
  readonly run: (context: PassContext) => Promise<PassReport>;
}
