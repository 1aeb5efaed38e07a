import { MOST_SKEW_MS } from '../table/server-clock.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import type { InvocationLabels, Telemetry } from '../telemetry/telemetry.ts';
import { CLOSING_MS, MEASURING_MS } from './budgets.ts';
import { withinDeadline } from './deadline.ts';
import type { Environment } from './environment.ts';

export interface Invocation {
  readonly environment: Environment;
  readonly telemetry: Telemetry;
  /** How long the function may still run. */
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

/** Returns what `work` comes to within so long, and leaves the invocation time to record and log what happened. */
export function withinInvocation<T>(
  { environment, remainingMs }: Invocation,
  longestMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withinDeadline(environment, Math.min(longestMs, remainingMs() - CLOSING_MS), work);
}

/** Runs a handler's work, logs what failed it, and writes its metrics. */
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

/** What an invocation decides by time comes after this. A table that does not answer fails the calls that need it, not this one. */
async function measured(
  environment: Environment,
  measureClock: NonNullable<Environment['measureClock']>,
): Promise<void> {
  await withinDeadline(environment, MEASURING_MS, measureClock).catch(() => undefined);
}

/** Only a clock that is wrong has a line and a metric. */
function reportSkew({ skewMs = () => 0 }: Environment, telemetry: Telemetry): void {
  const aheadMs = skewMs();
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return;
  telemetry.log('error', "the clock differs from the table's", { skewMs: aheadMs });
  telemetry.count('clockSkewed', 1);
}
