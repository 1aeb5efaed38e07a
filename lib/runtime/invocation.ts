import { readPauseOfAll } from '../table/clusters.ts';
import { MOST_SKEW_MS } from '../table/key-value-table.ts';
import { errorSentence, type InvocationLabels, type Telemetry } from '../telemetry/telemetry.ts';
import { MEASURING_MS, withinDeadline } from './deadline.ts';
import type { Environment, TableEnvironment } from './environment.ts';

export interface Invocation<Of extends TableEnvironment = Environment> {
  readonly environment: Of;
  readonly telemetry: Telemetry;
  readonly remainingMs: () => number;
}

export interface InvocationContext<Of extends TableEnvironment = Environment> {
  readonly environment: Of;
  readonly getRemainingTimeInMillis: () => number;
  readonly awsRequestId?: string | undefined;
}

export type Handler<Answer, Of extends TableEnvironment = Environment> = (
  event: unknown,
  context: InvocationContext<Of>,
) => Promise<Answer>;

/** Runs a handler's work, logs its failure, and writes its metrics. */
export async function runInvocation<Result, Of extends TableEnvironment>(
  loop: InvocationLabels['loop'],
  context: InvocationContext<Of>,
  work: (invocation: Invocation<Of>) => Promise<Result>,
): Promise<Result> {
  const { awsRequestId: requestId, environment } = context;
  const telemetry = environment.telemetry({ loop, requestId });
  try {
    await measureClock(environment);
    return await work({ environment, telemetry, remainingMs: () => context.getRemainingTimeInMillis() });
  } catch (error) {
    telemetry.log('error', 'invocation failed', { errors: [errorSentence(error)] });
    throw error;
  } finally {
    reportSkew(environment, telemetry);
    telemetry.flush();
  }
}

/** Measures the clock before any decision. Ignores a table that does not answer, because the next call reports the fault. */
async function measureClock(environment: TableEnvironment): Promise<void> {
  if (environment.clock?.isMeasured() ?? true) return;
  const read = (signal: AbortSignal) => readPauseOfAll(environment.table(signal));
  await withinDeadline(environment, MEASURING_MS, read).catch(() => undefined);
}

function reportSkew({ clock }: TableEnvironment, telemetry: Telemetry): void {
  const aheadMs = clock?.skewMs() ?? 0;
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return;
  telemetry.log('error', "the clock differs from the table's", { skewMs: aheadMs });
  telemetry.count('clockSkewed', 1);
}
