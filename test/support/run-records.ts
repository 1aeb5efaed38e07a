import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import type { RunRecord, RunRecords } from '../../lib/table/run-records.ts';

/** The record of a pass that succeeded at `startedAtMs` and found nothing, but for what a test cares about. */
export function aRunRecord(startedAtMs: number, overrides: Partial<RunRecord> = {}): RunRecord {
  return {
    passId: 'p',
    startedAtMs,
    durationMs: 12.5,
    outcome: 'succeeded',
    mode: 'enforce',
    observed: false,
    counts: {},
    findings: [],
    failuresInARow: 0,
    lastSuccessAtMs: startedAtMs,
    events: {},
    ...overrides,
  };
}

/** One for every loop. */
export function runRecords(startedAtMs: number, overrides: Partial<RunRecord> = {}): RunRecords {
  return Object.fromEntries(LOOPS.map((loop) => [loop, aRunRecord(startedAtMs, overrides)]));
}
