import type { ClusterSpec } from '../cluster/cluster-spec.ts';

/** A hold on one cluster's passes, or on all. */
export interface Pause {
  readonly untilMs: number;
  readonly reason: string;
  readonly by: string;
}

/** `#clusters/<name>`: one registered control plane. */
export interface RegisteredCluster {
  readonly spec: ClusterSpec;
  /** Grows with every change of the spec. */
  readonly generation: number;
  /** The generation at which the ranges or the allocator last changed. */
  readonly rangesGeneration: number;
  readonly paused?: Pause;
}
