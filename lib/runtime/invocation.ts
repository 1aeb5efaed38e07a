import { MOST_SKEW_MS } from '../table/server-clock.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { InvocationLabels, Telemetry } from '../telemetry/telemetry.ts';
import { CLOSING_MS, MEASURING_MS } from './budgets.ts';
import { withinDeadline } from './deadline.ts';
import type { Environment } from './environment.ts';

export interface Invocation {
  readonly environment: Environment;
  readonly telemetry: Telemetry;
  /** Returns how long the function may still run. */
  readonly remainingMs: () => number;
}

export interface LambdaContext {
  readonly getRemainingTimeInMillis: () => number;
  readonly awsRequestId?: string;
}

export interface InvocationContext extends LambdaContext {
  readonly environment: Environment;
}

export type Handler<Answer> = (event: unknown, context: InvocationContext) => Promise<Answer>;

/** Returns the result of `work` within a time limit that leaves the invocation time to record and log it. */
export function withinInvocation<T>(
  { environment, remainingMs }: Invocation,
  longestMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withinDeadline(environment, Math.min(longestMs, remainingMs() - CLOSING_MS), work);
}

/** Runs a handler's work, logs its failure, and writes its metrics. */
export async function runInvocation<Result>(
  loop: InvocationLabels['loop'],
  context: InvocationContext,
  work: (invocation: Invocation) => Promise<Result>,
): Promise<Result> {
  const { awsRequestId: requestId, environment } = context;
  const telemetry = environment.telemetry({ loop, ...(requestId !== undefined && { requestId }) });
  try {
    if (environment.measureClock !== undefined) await measured(environment, environment.measureClock);
    return await work({ environment, telemetry, remainingMs: () => context.getRemainingTimeInMillis() });
  } catch (error) {
    telemetry.log('error', 'invocation failed', { errors: [errorSentence(error)] });
    throw error;
  } finally {
    reportSkew(environment, telemetry);
    telemetry.flush();
  }
}

/**
 * Measures the clock before any decision that depends on time. If the table does not answer, the calls that need it
 * fail later.
 */
async function measured(
  environment: Environment,
  measureClock: NonNullable<Environment['measureClock']>,
): Promise<void> {
  await withinDeadline(environment, MEASURING_MS, measureClock).catch(() => undefined);
}

/** Logs and counts only a wrong clock. */
function reportSkew({ skewMs = () => 0 }: Environment, telemetry: Telemetry): void {
  const aheadMs = skewMs();
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return;
  telemetry.log('error', "the clock differs from the table's", { skewMs: aheadMs });
  telemetry.count('clockSkewed', 1);
}
