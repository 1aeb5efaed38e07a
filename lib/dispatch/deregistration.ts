import * as z from 'zod/mini';
import { type DeregisterRequest, type DeregisterResult, deregister } from '../api-servers/deregister.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import { CALLER_KEY, callerRefusal } from '../runtime/caller-keys.ts';
import { pause, unlessAborted } from '../runtime/deadline.ts';
import { DispatchError, eventFaults } from '../runtime/errors.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { otherOwner, readCluster } from '../table/clusters.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { describeError, type ErrorDescription, errorSentence } from '../telemetry/describe-error.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { lazyClusterPort } from './lazy-cluster-port.ts';

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
  return (event, context) => runInvocation('deregister', context, (invocation) => answer(parse(event), invocation));
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

export interface DeregistrationRequest {
  readonly cluster: string;
  readonly address: string;
  readonly untilMinutes?: number | undefined;
  readonly lastOne?: boolean | undefined;
  /** The server itself asks, because it ends. */
  readonly goingDown?: boolean | undefined;
  readonly callerKey?: string | undefined;
}

export type DeregistrationResult =
  | DeregisterResult
  | { readonly outcome: 'refused'; readonly reason: 'callerRefused' | 'otherStack'; readonly message: string };

export interface DeregistrationOptions {
  /** Ends every call, and the waiting. */
  readonly signal: AbortSignal;
  readonly wouldWrite: (description: string) => void;
  /** Writes nothing: not to the cluster, and not to the table. */
  readonly dryRun?: boolean;
}

const LOOK_AGAIN_MS = 1_000;
/** With these the next look would find the same. */
const LASTING: ReadonlySet<string> = new Set([
  'BadKubeconfig',
  'Forbidden',
  'Invalid',
  'MalformedReply',
  'Rejected',
  'TlsFailure',
  'Unauthorized',
]);

/**
 * Withdraws the address in the table before anything else: that needs no API server. Then takes it out of the endpoints,
 * and looks again every second until they list it no longer, or time is over.
 */
export async function deregisterAddress(
  asked: DeregistrationRequest,
  invocation: Invocation,
  { signal, wouldWrite, dryRun = false }: DeregistrationOptions,
): Promise<DeregistrationResult> {
  const { environment } = invocation;
  const { untilMinutes, lastOne, goingDown, address } = asked;
  const { nowMs, newPassId } = environment;
  const stored = environment.table(signal);
  const table = dryRun ? unwrittenTable(stored, { nowMs, newWriteId: newPassId }) : stored;
  const cluster = await readCluster(table, asked.cluster);
  if (cluster === undefined) {
    throw new DispatchError('NotRegistered', `No cluster of the name ${asked.cluster} is registered in the table.`);
  }
  const { spec } = cluster;
  const refusal = callerRefusal(spec, asked.callerKey, environment.stack);
  if (refusal !== undefined) return { outcome: 'refused', reason: 'callerRefused', message: refusal };
  const owner = otherOwner(cluster, environment.stack);
  if (owner !== undefined) {
    const message = `cluster ${spec.name} belongs to the stack ${owner}: invoke the deregister function of that one`;
    return { outcome: 'refused', reason: 'otherStack', message };
  }
  const observing = dryRun || spec.mode === 'observe';
  const port = lazyClusterPort(() => connected(spec, invocation, signal));
  const request: DeregisterRequest = {
    spec,
    table,
    kubernetes: observing ? withholdWrites(port, wouldWrite) : port,
    address,
    ...(untilMinutes !== undefined && { untilMs: environment.nowMs() + untilMinutes * 60_000 }),
    ...(lastOne !== undefined && { lastOne }),
    ...(goingDown !== undefined && { goingDown }),
    nowMs: environment.nowMs,
  };
  const first = await deregister(request);
  return observing ? first : untilGone(first, request, invocation, signal);
}

async function untilGone(
  first: DeregisterResult,
  request: DeregisterRequest,
  { environment }: Invocation,
  signal: AbortSignal,
): Promise<DeregisterResult> {
  let last = first;
  while (last.outcome === 'deregistered' && last.stillPublished && mayChange(last.error) && !signal.aborted) {
    await pause(environment.startDeadline(LOOK_AGAIN_MS), signal);
    const changes = [...last.changes];
    // What the time cuts off was looked at before: the withdrawal is in the table, and the last look is the answer.
    const again = await deregister({ ...request, untilMs: last.untilMs }).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      throw error;
    });
    if (again?.outcome !== 'deregistered') break;
    last = { ...again, changes: [...changes, ...again.changes] };
  }
  return last;
}

function mayChange(error: { readonly code: string } | undefined): boolean {
  return error === undefined || !LASTING.has(error.code);
}

async function connected(
  spec: ClusterSpec,
  { environment, telemetry }: Invocation,
  signal: AbortSignal,
): Promise<ClusterPort> {
  const warn = (text: string) => {
    telemetry.log('warn', text, { cluster: spec.name });
  };
  try {
    const access = await unlessAborted(signal, () =>
      environment.connect(spec, { loop: 'kubernetes-service', signal, warn }),
    );
    return access.kubernetes;
  } catch (error) {
    if (!signal.aborted || error instanceof ClusterError) throw error;
    const message = `The kubeconfig of cluster ${spec.name} was not read in time. Invoke deregister again, or look where it is kept.`;
    throw new ClusterError('DeadlineExceeded', message, { cause: error });
  }
}
