import type { LoopDefinition } from '../loops/pass.ts';
import type { RegisteredCluster } from '../table/clusters.ts';
import type { RunRecord } from '../table/run-records.ts';

/** What one pass is made of, besides the environment. */
export interface PassInput {
  readonly loop: LoopDefinition;
  readonly cluster: RegisteredCluster;
  /** The record of the loop's last pass. */
  readonly previous: RunRecord | undefined;
  readonly startedAtMs: number;
  /** Ends every call of the pass; what is under way all the same is left to itself. */
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
  /** Another stack, which owns the cluster: this pass writes nothing at all. */
  readonly ownedBy?: string | undefined;
}
