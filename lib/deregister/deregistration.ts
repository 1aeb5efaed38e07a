import * as z from 'zod/mini';
import { endpointsChanges, publishChanges } from '../dispatch/report-pass.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { withholdWrites } from '../kubernetes/withhold-writes.ts';
import { CALLER_KEY, callerRefusal } from '../runtime/caller-keys.ts';
import {
  ANSWERING_MS,
  answerBudgetMs,
  DispatchError,
  pause,
  withDeadline,
  withinDeadline,
} from '../runtime/deadline.ts';
import type { Environment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { shapeFaults } from '../spec/shapes.ts';
import { otherOwner, readCluster } from '../table/clusters.ts';
import { unwrittenTable } from '../table/table-views.ts';
import { unlessAborted } from '../util/async.ts';
import { isoTime } from '../util/values.ts';
import { type DeregisterRequest, type DeregisterResult, deregister, refused } from './deregister.ts';

/** The longest wait for the removal from the endpoints: two intervals of kubernetes-service, as in upstream. */
const LONGEST_MS = 20_000;

const requestShape = z.strictObject({
  cluster: z.string(),
  address: z.string(),
  untilMinutes: z.optional(z.number().check(z.positive('is not above 0'))),
  lastOne: z.optional(z.boolean()),
  callerKey: z.optional(z.string().check(z.regex(CALLER_KEY, 'is not 32 to 256 printable characters'))),
});

/** Returns the handler that withdraws one address, and waits for its removal from the endpoints, up to `LONGEST_MS`. */
export function deregistration(): Handler<DeregisterResult> {
  return (event, context) => runInvocation('deregister', context, (invocation) => answer(parse(event), invocation));
}

function parse(event: unknown): DeregistrationRequest {
  const parsed = requestShape.safeParse(event);
  if (parsed.success) return parsed.data;
  throw new DispatchError(
    'BadEvent',
    `The event must be {"cluster": name, "address": IP address}, optionally with "untilMinutes", "lastOne" and "callerKey": ${shapeFaults(parsed.error, 'the event')}`,
  );
}

async function answer(request: DeregistrationRequest, invocation: Invocation): Promise<DeregisterResult> {
  const { environment, telemetry } = invocation;
  const budgetMs = answerBudgetMs(invocation.remainingMs, LONGEST_MS);
  const wouldWrite = new Set<string>();
  // A call that ignores the signal is abandoned a little later, so that a call that obeys it has time to return its error.
  const result = await withDeadline(environment, budgetMs, (signal) =>
    withinDeadline(environment, budgetMs + ANSWERING_MS / 2, () =>
      deregisterAddress(request, invocation, { signal, wouldWrite: (description) => wouldWrite.add(description) }),
    ),
  );
  const { cluster, address } = request;
  if (result.outcome !== 'deregistered') {
    telemetry.log('warn', `deregister: ${result.outcome}`, { cluster, address, reason: result.message });
    return result;
  }
  const { error, untilMs, stillPublished, changes } = result;
  telemetry.log(error === undefined ? 'info' : 'warn', 'deregister: deregistered', {
    cluster,
    address,
    until: isoTime(untilMs),
    stillPublished,
    ...(wouldWrite.size > 0 ? { wouldWrite: [...wouldWrite] } : { changes }),
    errors: error && [`${error.code}: ${error.message}`],
  });
  await publishChanges(invocation, { cluster, function: 'deregister' }, endpointsChanges(changes));
  return result;
}

export type DeregistrationRequest = Readonly<z.infer<typeof requestShape>> & Pick<DeregisterRequest, 'goingDown'>;

interface DeregistrationOptions {
  readonly signal: AbortSignal;
  readonly wouldWrite: (description: string) => unknown;
  /** True to write neither to the cluster nor to the table. */
  readonly dryRun?: boolean;
}

/** A kubeconfig that is older than this is read again. */
const KUBECONFIG_MS = 60_000;
const CHECK_AGAIN_MS = 1_000;
/** The codes of errors that another attempt may resolve. */
const PASSING = new Set(['Conflict', 'AlreadyExists', 'Throttled', 'Unavailable', 'DeadlineExceeded']);

/** Withdraws the address in the table, and then removes it from the endpoints. The withdrawal needs no API server. */
export async function deregisterAddress(
  request: DeregistrationRequest,
  invocation: Invocation,
  { signal, wouldWrite, dryRun = false }: DeregistrationOptions,
): Promise<DeregisterResult> {
  const { untilMinutes, lastOne, goingDown, address } = request;
  const { environment } = invocation;
  const { nowMs, stack } = environment;
  const stored = environment.table(signal);
  const table = dryRun ? unwrittenTable(stored, { nowMs }) : stored;
  const cluster = await readCluster(table, request.cluster);
  if (cluster === undefined) {
    throw new DispatchError('NotRegistered', `Cluster ${request.cluster} is not registered in the table.`);
  }
  const { spec } = cluster;
  const refusal = callerRefusal(spec, request.callerKey, stack);
  if (refusal !== undefined) return refused('callerRefused', refusal);
  const owner = otherOwner(cluster, stack);
  if (owner !== undefined) {
    const where = `belongs to the stack ${owner}: invoke the deregister function of that stack`;
    return refused('otherStack', `cluster ${spec.name} ${where}`);
  }
  const observing = dryRun || spec.mode === 'observe';
  let port: ClusterPort | undefined;
  const connect = async () => {
    port ??= await connected(spec, invocation, signal);
    return observing ? withholdWrites(port, wouldWrite) : port;
  };
  const removal: DeregisterRequest = {
    spec,
    table,
    connect,
    nowMs,
    address,
    lastOne,
    goingDown,
    ...(untilMinutes !== undefined && { untilMs: nowMs() + untilMinutes * 60_000 }),
  };
  const first = await deregister(removal);
  return observing ? first : untilRemoved(first, removal, invocation, signal);
}

/** Deregisters an address for a caller that is not a Lambda function. The time limit is that of the function `deregister`. */
export function deregisterNow(
  request: DeregistrationRequest,
  environment: Environment,
  options: Omit<DeregistrationOptions, 'signal'>,
): Promise<DeregisterResult> {
  const telemetry = environment.telemetry({ loop: 'deregister' });
  const invocation = { environment, telemetry, remainingMs: () => LONGEST_MS };
  return withDeadline(environment, LONGEST_MS, (signal) =>
    deregisterAddress(request, invocation, { ...options, signal }),
  );
}

async function untilRemoved(
  first: DeregisterResult,
  removal: DeregisterRequest,
  { environment }: Invocation,
  signal: AbortSignal,
): Promise<DeregisterResult> {
  let last = first;
  while (
    last.outcome === 'deregistered' &&
    last.stillPublished &&
    (last.error === undefined || PASSING.has(last.error.code)) &&
    !signal.aborted
  ) {
    await pause(environment.startDeadline(CHECK_AGAIN_MS), signal);
    const { changes } = last;
    const again = await deregister({ ...removal, untilMs: last.untilMs, repeated: true }).catch((error: unknown) => {
      if (signal.aborted) return undefined;
      throw error;
    });
    if (again?.outcome === 'refused' && again.reason === 'undone') return again;
    if (again?.outcome !== 'deregistered') break;
    last = { ...again, changes: [...changes, ...again.changes] };
  }
  return last;
}

async function connected(
  spec: ClusterSpec,
  { environment, telemetry }: Invocation,
  signal: AbortSignal,
): Promise<ClusterPort> {
  const warn = (text: string) => telemetry.log('warn', text, { cluster: spec.name });
  const connect = () => environment.connect(spec, { loop: 'kubernetes-service', signal, warn });
  try {
    return await unlessAborted(signal, async () => {
      const { controlPlane, kubernetes } = await connect();
      // If the kubeconfig has changed, the function connects again, because it must not use the former control plane.
      // If the secret store does not answer, the kubeconfig in memory is used.
      const isCurrent = await controlPlane.confirm(KUBECONFIG_MS).catch(() => true);
      return isCurrent ? kubernetes : (await connect()).kubernetes;
    });
  } catch (error) {
    if (!signal.aborted || error instanceof ClusterError) throw error;
    const message = `The kubeconfig of cluster ${spec.name} was not read in time. Invoke deregister again, or check the store of the secret.`;
    throw new ClusterError('DeadlineExceeded', message, { cause: error });
  }
}
