import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { type RunRecord, type RunRecords, readRunRecord, writeRunRecord } from '../../lib/table/run-records.ts';

/** Returns the record of a pass that succeeded at `startedAtMs` without findings, with the given fields changed. */
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

/** Records that the last passes of both repair loops began at `startedAtMs` and succeeded. */
export async function repairedAt(table: KeyValueTable, startedAtMs: number, cluster = 'main'): Promise<void> {
  for (const loop of ['cluster-ip-repair', 'node-port-repair'] as const) {
    const last = await readRunRecord(table, cluster, loop);
    if (last?.record.startedAtMs === startedAtMs) continue;
    await writeRunRecord(table, cluster, loop, aRunRecord(startedAtMs), last?.item);
  }
}

export function runRecords(startedAtMs: number, overrides: Partial<RunRecord> = {}): RunRecords {
  return Object.fromEntries(LOOPS.map((loop) => [loop, aRunRecord(startedAtMs, overrides)]));
}
