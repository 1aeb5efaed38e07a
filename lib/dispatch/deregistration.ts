import * as z from 'zod/mini';
import type { ClusterPort } from '../kubernetes/cluster-port.ts';
import { observeOnly } from '../kubernetes/observe-only.ts';
import type { DeregisterResult } from '../loops/deregister.ts';
import { deregister } from '../loops/deregister.ts';
import { readCluster } from '../table/clusters.ts';
import type { ErrorDescription } from '../telemetry/describe-error.ts';
import { describeError, errorSentence } from '../telemetry/describe-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { unlessAborted } from './deadline.ts';
import { DispatchError } from './errors.ts';
import { eventFaults } from './event-faults.ts';
import type { Invocation } from './invocation.ts';
import type { InvocationContext } from './invoked.ts';
import { invoked } from './invoked.ts';

/** As the original waits for its endpoints to go: twice the interval of the endpoints loop. */
const LONGEST_MS = 20_000;
const CLOSING_MS = 1_000;

const request = z.strictObject({
  cluster: z.string(),
  address: z.string(),
  untilMinutes: z.optional(z.number().check(z.positive('is not above 0'))),
  lastOne: z.optional(z.boolean()),
});
type Request = z.infer<typeof request>;

/** What the caller gets: the result with its error as text. */
export type DeregistrationAnswer =
  | (Omit<Extract<DeregisterResult, { outcome: 'deregistered' }>, 'error'> & { readonly error?: ErrorDescription })
  | Exclude<DeregisterResult, { outcome: 'deregistered' }>;

export type DeregistrationHandler = (event: unknown, context: InvocationContext) => Promise<DeregistrationAnswer>;

/** The handler of what drains an API server: takes one address out of the endpoints. A refusal is an answer. */
export function deregistration(): DeregistrationHandler {
  return (event, context) => invoked('deregister', context, (invocation) => answer(parse(event), invocation));
}

function parse(event: unknown): Request {
  const parsed = request.safeParse(event);
  if (parsed.success) return parsed.data;
  throw new DispatchError(
    'BadEvent',
    `The event is not {"cluster": name, "address": IP address}, with "untilMinutes" and "lastOne" if need be: ${eventFaults(parsed.error)}`,
  );
}

async function answer(asked: Request, invocation: Invocation): Promise<DeregistrationAnswer> {
  const { environment, telemetry, remainingMs } = invocation;
  const deadline = environment.startDeadline(Math.min(LONGEST_MS, Math.max(0, remainingMs() - CLOSING_MS)));
  const wouldWrite: string[] = [];
  try {
    const result = await unlessAborted(deadline.signal, () =>
      carryOut(asked, invocation, deadline.signal, (description) => wouldWrite.push(description)),
    );
    tell(telemetry, asked, result, wouldWrite);
    if (result.outcome !== 'deregistered') return result;
    const { error, ...answered } = result;
    return { ...answered, ...(error !== undefined && { error: describeError(error) }) };
  } finally {
    deadline.cancel();
  }
}

function tell(telemetry: Telemetry, asked: Request, result: DeregisterResult, wouldWrite: readonly string[]): void {
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

async function carryOut(
  { cluster: name, address, untilMinutes, lastOne }: Request,
  { environment, telemetry }: Invocation,
  signal: AbortSignal,
  wouldWrite: (description: string) => void,
): Promise<DeregisterResult> {
  const table = environment.table(signal);
  const cluster = await readCluster(table, name);
  if (cluster === undefined) {
    throw new DispatchError('NotRegistered', `No cluster of the name ${name} is registered in the table.`);
  }
  const { spec } = cluster;
  const warn = (text: string) => {
    telemetry.log('warn', text, { cluster: name });
  };
  const port = await environment.connect(spec, { loop: 'kubernetes-service', signal, warn }).then(
    ({ kubernetes }) => kubernetes,
    // The table says who is withdrawn, also while nobody can ask the API server.
    unreachable,
  );
  return deregister({
    spec,
    table,
    kubernetes: spec.mode === 'observe' ? observeOnly(port, wouldWrite) : port,
    address,
    ...(untilMinutes !== undefined && { untilMs: environment.nowMs() + untilMinutes * 60_000 }),
    ...(lastOne !== undefined && { lastOne }),
    nowMs: environment.nowMs,
  });
}

/** A port that answers everything with the reason why there is none. */
function unreachable(error: unknown): ClusterPort {
  const fail = () => Promise.reject(error);
  return {
    get: fail,
    list: fail,
    create: fail,
    update: fail,
    mergePatch: fail,
    delete: fail,
    services: () => ({ [Symbol.asyncIterator]: () => ({ next: fail }) }),
  };
}
