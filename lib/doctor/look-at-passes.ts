import { type ClusterSpec, LOOPS, type Loop } from '../cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../cluster/schedules.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { type RunRecord, readRunRecord } from '../table/run-records.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

const PERIODS = 3;
/** The record of what runs every ten seconds is written once a minute. */
const LEAST_PERIOD_MS = 60_000;

/** How the loops fared by their run records. */
export async function lookAtPasses(
  spec: ClusterSpec,
  table: KeyValueTable,
  nowMs: number,
): Promise<readonly DoctorLine[]> {
  const looked = await Promise.all(
    LOOPS.map(async (loop) => passLine(loop, spec, (await readRunRecord(table, spec.name, loop))?.record, nowMs)),
  );
  return looked.every(({ level }) => level === 'ok') ? [ok('passes', 'every loop succeeded lately')] : looked;
}

function passLine(loop: Loop, spec: ClusterSpec, record: RunRecord | undefined, nowMs: number): DoctorLine {
  if (record === undefined) {
    return warn('passes', `${loop} never ran`, 'Wait for its schedule, then look at the log of its function');
  }
  const { error, failuresInARow, lastSuccessAtMs, findings } = record;
  if (failuresInARow > 0) {
    const times = failuresInARow === 1 ? 'once' : `${failuresInARow} times in a row`;
    return fail('passes', `${loop} failed ${times}: ${error?.message ?? 'its record does not say why'}`);
  }
  const periodMs = Math.max(LEAST_PERIOD_MS, spec.intervalSeconds[loop] * 1000, SCHEDULE_SECONDS[loop] * 1000);
  const sinceMs = nowMs - (lastSuccessAtMs ?? record.startedAtMs);
  if (sinceMs > PERIODS * periodMs) {
    const fix = 'Look whether its schedule is enabled, and at the log of its function';
    return fail('passes', `${loop} has not succeeded for ${Math.round(sinceMs / 60_000)} minutes`, fix);
  }
  const [owners] = findings.filter(({ type }) => type === 'twoOwners');
  return owners === undefined ? ok('passes', `${loop} succeeded`) : fail('passes', `${loop}: ${owners.message}`);
}
