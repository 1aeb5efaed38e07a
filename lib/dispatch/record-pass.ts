import type { ClusterSpec, Loop } from '../cluster/cluster-spec.ts';
import { type ReadRunRecord, writeRunRecord } from '../table/run-records.ts';
import { RECORDING_MS } from './budgets.ts';
import { unlessAborted } from './deadline.ts';
import type { Environment } from './environment.ts';
import { type EndedPass, isWorthRecording, recordOf } from './pass-record.ts';

export interface RecordOptions {
  /** Also when nobody would miss it. */
  readonly always?: boolean;
}

/**
 * Writes the record of a pass. Never throws.
 * @param last what was read before the pass
 * @returns the pass, failed when its record could not be written: nobody would know of it, nor what it must remember.
 */
export async function recordPass(
  environment: Pick<Environment, 'startDeadline' | 'table'>,
  loop: Loop,
  spec: ClusterSpec,
  pass: EndedPass,
  last: ReadRunRecord | undefined,
  { always = false }: RecordOptions = {},
): Promise<EndedPass> {
  const record = recordOf(pass, last?.record);
  if (!always && !isWorthRecording(loop, spec, pass, record, last?.record)) return pass;
  const deadline = environment.startDeadline(RECORDING_MS);
  try {
    // When another pass of the loop was faster its record stands, and the next one reads that.
    await unlessAborted(deadline.signal, () =>
      writeRunRecord(environment.table(deadline.signal), spec.name, loop, record, last?.item),
    );
    return pass;
  } catch (error) {
    return { ...pass, errors: [...pass.errors, error] };
  } finally {
    deadline.cancel();
  }
}
