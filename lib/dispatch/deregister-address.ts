import { type DeregisterRequest, type DeregisterResult, deregister } from '../api-servers/deregister.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { ClusterError, type ClusterPort } from '../kubernetes/cluster-port.ts';
import { observeOnly } from '../kubernetes/observe-only.ts';
import { readCluster } from '../table/clusters.ts';
import { callerRefusal } from './caller-keys.ts';
import { pause, unlessAborted } from './deadline.ts';
import { DispatchError } from './errors.ts';
import type { Invocation } from './invoked.ts';
import { lazyClusterPort } from './lazy-cluster-port.ts';

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
  { signal, wouldWrite }: DeregistrationOptions,
): Promise<DeregistrationResult> {
  const { environment } = invocation;
  const { untilMinutes, lastOne, goingDown, address } = asked;
  const table = environment.table(signal);
  const cluster = await readCluster(table, asked.cluster);
  if (cluster === undefined) {
    throw new DispatchError('NotRegistered', `No cluster of the name ${asked.cluster} is registered in the table.`);
  }
  const { spec, owner } = cluster;
  const refusal = callerRefusal(spec, asked.callerKey, environment.stack);
  if (refusal !== undefined) return { outcome: 'refused', reason: 'callerRefused', message: refusal };
  if (owner !== undefined && environment.stack !== undefined && owner.stack !== environment.stack) {
    const message = `cluster ${spec.name} belongs to the stack ${owner.stack}: invoke the deregister function of that one`;
    return { outcome: 'refused', reason: 'otherStack', message };
  }
  const observing = spec.mode === 'observe';
  const port = lazyClusterPort(() => connected(spec, invocation, signal));
  const request: DeregisterRequest = {
    spec,
    table,
    kubernetes: observing ? observeOnly(port, wouldWrite) : port,
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
