import type { Loop } from './cluster-spec.ts';

/** How often each loop is due at most, in seconds: the original's intervals, and what the schedules invoke. */
export const SCHEDULE_SECONDS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 60,
  'kubernetes-service': 10,
  'cluster-ip-repair': 180,
  'node-port-repair': 180,
};

/** A lease lives through one tick that comes late: its seconds are at least this many intervals. */
export const LEASE_INTERVALS = 1.5;
