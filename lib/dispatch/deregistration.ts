import * as z from 'zod/mini';
import type { DeregisterResult } from '../api-servers/deregister.ts';
import type { ErrorDescription } from '../telemetry/describe-error.ts';
import { describeError, errorSentence } from '../telemetry/describe-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { CALLER_KEY } from './caller-keys.ts';
import { unlessAborted } from './deadline.ts';
import { type DeregistrationRequest, type DeregistrationResult, deregisterAddress } from './deregister-address.ts';
import { DispatchError } from './errors.ts';
import { eventFaults } from './event-faults.ts';
import { type Handler, type Invocation, invoked } from './invoked.ts';

/** As the original waits for its endpoints to go: twice the interval of the endpoints loop. */
const LONGEST_MS = 20_000;
const CLOSING_MS = 1_000;

const request = z.strictObject({
  cluster: z.string(),
  address: z.string(),
  untilMinutes: z.optional(z.number().check(z.positive('is not above 0'))),
  lastOne: z.optional(z.boolean()),
  callerKey: z.optional(z.string().check(z.regex(CALLER_KEY, 'is not 32 to 256 printable characters'))),
});

/** What the caller gets: the result with its error as text. */
export type DeregistrationAnswer =
  | (Omit<Extract<DeregisterResult, { outcome: 'deregistered' }>, 'error'> & { readonly error?: ErrorDescription })
  | Exclude<DeregistrationResult, { outcome: 'deregistered' }>;

/**
 * The handler of what drains an API server: withdraws one address, and answers when the endpoints list it no longer, or
 * with `stillPublished` when time is over. Safe to repeat. A refusal is an answer.
 */
export function deregistration(): Handler<DeregistrationAnswer> {
  return (event, context) => invoked('deregister', context, (invocation) => answer(parse(event), invocation));
}

function parse(event: unknown): DeregistrationRequest {
  const parsed = request.safeParse(event);
  if (parsed.success) return parsed.data;
  throw new DispatchError(
    'BadEvent',
    `The event is not {"cluster": name, "address": IP address}, with "untilMinutes", "lastOne" and "callerKey" if need be: ${eventFaults(parsed.error)}`,
  );
}

async function answer(asked: DeregistrationRequest, invocation: Invocation): Promise<DeregistrationAnswer> {
  const { environment, telemetry, remainingMs } = invocation;
  const budgetMs = Math.max(0, Math.min(LONGEST_MS, remainingMs() - CLOSING_MS));
  const deadline = environment.startDeadline(budgetMs);
  // What does not heed its deadline is left to itself a little later: until then it may say what it was about.
  const last = environment.startDeadline(budgetMs + CLOSING_MS / 2);
  const wouldWrite: string[] = [];
  try {
    const result = await unlessAborted(last.signal, () =>
      deregisterAddress(asked, invocation, {
        signal: deadline.signal,
        wouldWrite: (description) => wouldWrite.push(description),
      }),
    );
    tell(telemetry, asked, result, [...new Set(wouldWrite)]);
    if (result.outcome !== 'deregistered') return result;
    const { error, ...answered } = result;
    return { ...answered, ...(error !== undefined && { error: describeError(error) }) };
  } finally {
    deadline.cancel();
    last.cancel();
  }
}

function tell(
  telemetry: Telemetry,
  asked: DeregistrationRequest,
  result: DeregistrationResult,
  wouldWrite: readonly string[],
): void {
  const { cluster, address } = asked;
  if (result.outcome !== 'deregistered') {
    telemetry.log('warn', `deregister: ${result.outcome}`, { cluster, address, reason: result.message });
    return;
  }
  const { error, untilMs, stillPublished, changes } = result;
  telemetry.log(error === undefined ? 'info' : 'warn', 'deregister: deregistered', {
    cluster,
    address,
    until: new Date(untilMs).toISOString(),
    stillPublished,
    ...(wouldWrite.length > 0 ? { wouldWrite } : { changes }),
    errors: error && [errorSentence(error)],
  });
}
