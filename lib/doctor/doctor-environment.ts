import type { QueueDepth } from '../aws/sqs-queue.ts';
import type { LoadKubeconfig } from '../runtime/load-kubeconfig.ts';

/** What the doctor needs besides the environment of every function. */
export interface DoctorEnvironment {
  /** Reads it anew each time: whoever has just corrected it wants to know. */
  readonly loadKubeconfig: LoadKubeconfig;
  /** Absent, as on a person's machine: which there are is not known, and none is looked at. */
  readonly queues?: { readonly urls: readonly string[]; readonly depth: QueueDepth };
}
