import type { Loop } from '../cluster/cluster-spec.ts';

/** The longest time of one pass, however much time the function has. */
export const PASS_BUDGET_MS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 20_000,
  // A longer pass would overlap the next one.
  'kubernetes-service': 9_000,
  'cluster-ip-repair': 120_000,
  'node-port-repair': 120_000,
};

/** The time for the first reply of the table, which shows the table's clock. */
export const MEASURING_MS = 2_000;
export const LISTING_MS = 10_000;
/** The time for queueing ticks. This invocation, or that of the next minute, processes ticks that were not queued. */
export const QUEUEING_MS = 5_000;
/** The time for the figures of the whole fleet. */
export const FIGURES_MS = 20_000;
export const RECORDING_MS = 3_000;
/** Reserved at the end of an invocation to record and log its results. */
export const CLOSING_MS = RECORDING_MS + 1_000;
/** Reserved at the end of an invocation to answer its caller. */
export const ANSWERING_MS = 1_000;

/**
 * The number of simultaneous passes: enough that a few hanging clusters do not delay the others, and few enough for a
 * small function.
 */
export const CONCURRENT_PASSES = 16;

export const CONCURRENT_READS = 32;
