import type { ProbingPass } from '../api-servers/probe-addresses.ts';
import type { ServicePass } from '../api-servers/write-objects.ts';
import type { EventDraft, Finding, FindingType } from '../cluster/finding.ts';
import type { ControlPlane } from '../kubernetes/cluster-port.ts';
import type { Loop } from '../spec/cluster-spec.ts';
import type { KeyValueTable, TableValue } from '../table/key-value-table.ts';
import type { RunRecord } from '../table/run-records.ts';

/** All that one pass may use. The table and the client end calls at the deadline, and omit forbidden writes (`writes.ts`). */
export interface PassContext extends ProbingPass, ServicePass {
  /** The generation of the spec in which its ranges or its allocator last changed. The pass saves this number in each range. */
  readonly rangesGeneration: number;
  readonly table: KeyValueTable;
  readonly controlPlane: ControlPlane;
  /** The time from one pass of the loop to the next: the loop's interval, or longer while the cluster does not answer. */
  readonly triesEveryMs: number;
  /** The record of the last pass of the loop; `undefined` before the first pass. */
  readonly previous: Pick<RunRecord, 'observed' | 'lastSuccessAtMs' | 'state'> | undefined;
}

/** The result of a pass, with its expected problems. A pass that throws ends as failed. */
export interface PassReport {
  /** A line for each write, such as `created namespace kube-system`. */
  readonly changes: readonly string[];
  /** In mode `observe`, lines that the loop adds to the writes that the table and the Kubernetes client report. */
  readonly wouldWrite?: readonly string[];
  readonly findings: readonly Finding[];
  /** Events that belong to no finding. */
  readonly events?: readonly EventDraft[];
  /** The number of findings that are not in `findings`, by type. */
  readonly unlisted?: ReadonlyMap<FindingType, number>;
  /** Numbers for the run record and the log line, such as `services`, `allocated` and `activeLeases`. */
  readonly counts: Readonly<Record<string, number>>;
  /** Failures that did not stop the pass, such as an error about one namespace. A pass with errors counts as failed. */
  readonly errors: readonly Error[];
  /** The state for the next pass of the loop. It is saved in the run record. */
  readonly state?: TableValue;
}

export interface LoopDefinition {
  readonly id: Loop;
  readonly run: (context: PassContext) => Promise<PassReport>;
}
