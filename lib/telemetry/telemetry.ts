import type { FindingType } from '../cluster/finding.ts';
import type { Loop } from '../spec/cluster-spec.ts';
import { defined } from '../util/values.ts';

export type Level = 'info' | 'warn' | 'error';

export type FieldValue = string | number | boolean | readonly string[] | Readonly<Record<string, number>> | undefined;
export type LogFields = Readonly<Record<string, FieldValue>>;

/** The log and metrics of one invocation. Never throws, never waits. */
export interface Telemetry {
  /** Logs a constant `message` with variable `fields`. An error in a field must be the result of `errorSentence`. */
  log(level: Level, message: string, fields?: LogFields): void;
  /** Adds `by` to a counter. If `by` is 0, alarms still get a data point. CloudWatch bills each value of the dimension `type`. */
  count(counter: CounterName, by: number, type?: string): void;
  sample(name: SampleName, value: number): void;
  /** Writes the invocation's metrics, once. */
  flush(): void;
}

export interface InvocationLabels {
  readonly loop: Loop | 'deregister' | 'doctor' | 'allocate' | 'admission';
  readonly requestId?: string | undefined;
}

export type TelemetryFactory = (invocation: InvocationLabels) => Telemetry;

export const METRIC_NAMESPACE = 'kube-bootstrap-controller';

/** Counters; the first four are upstream's (`pkg/registry/core/service/{ipallocator,portallocator}/controller/metrics.go`). */
export type CounterName =
  | 'apiserver_clusterip_repair_ip_errors_total'
  | 'apiserver_clusterip_repair_reconcile_errors_total'
  | 'apiserver_nodeport_repair_port_errors_total'
  | 'apiserver_nodeport_repair_reconcile_errors_total'
  | 'findings'
  | 'passes'
  | 'failures'
  /** Kubernetes events that a pass dropped: beyond a limit, in a terminating namespace, or at its deadline. */
  | 'eventsDropped'
  /** Passes whose kubeconfig has a token or client certificate that ends soon (`endsSoon`). */
  | 'credentialsEnding'
  /** Invocations whose clock differs from the table's clock by more than 2 s. */
  | 'clockSkewed'
  /** Probes during which the process was too busy to receive an answer. */
  | 'lateProbes'
  | 'lateTicks'
  /** Minutes for which the cluster list could not be read and an earlier cluster list was used. */
  | 'staleClusterLists'
  /** Messages that are not ticks of this version and loop. */
  | 'unreadableTicks'
  /** Clusters that became suspects: their passes run alone, because a process that ran their passes ended or was blocked. */
  | 'suspects'
  | 'unpublishedEvents'
  | 'unqueuedTicks'
  | 'allocations'
  /** Refused requests to allocate, release or look up, by the code of the refusal. */
  | 'allocationsRefused'
  | 'allocationRetries'
  | FleetFigure;

/** The figures of a stack's clusters, once a minute. A large fleet is counted in parts: add their figures, except percentages. */
export type FleetFigure =
  | 'clustersRegistered'
  | 'clustersJudged'
  /** Clusters with a loop that failed three times in a row, or has no recorded success within `overdueAfterMs`. */
  | 'clustersOverdue'
  | 'clustersFailing'
  | 'clustersWithoutLiveLease'
  | 'clustersPaused'
  /** Clusters with a loop whose last pass has findings that do not resolve automatically. */
  | 'clustersWithFindings'
  | 'clustersWithTwoOwners'
  | 'clustersWithCredentialsEnding'
  | 'fullestRangeOfFleetPercent';

/** The metrics to which passes add values, with their units. A pass that has no value adds none. */
export const SAMPLE_UNITS = {
  durationMs: 'Milliseconds',
  activeLeases: 'Count',
  fullestRangePercent: 'Percent',
} as const;

export type SampleName = keyof typeof SAMPLE_UNITS;

/** The types of findings that upstream counts. Upstream counts `invalid` only for cluster IPs. */
const UPSTREAM = new Set<FindingType>(['leak', 'repair', 'full', 'outOfRange', 'duplicate', 'unknown', 'invalid']);

/** Returns the counter of a finding: upstream's counter if upstream has one, else `findings`. */
export function findingCounter(loop: Loop, type: FindingType): CounterName {
  if (!UPSTREAM.has(type)) return 'findings';
  if (loop === 'cluster-ip-repair') return 'apiserver_clusterip_repair_ip_errors_total';
  return loop === 'node-port-repair' && type !== 'invalid' ? 'apiserver_nodeport_repair_port_errors_total' : 'findings';
}

/** Returns upstream's counter of failed passes, which only the repair loops have. */
export function failedPassCounter(loop: Loop): CounterName | undefined {
  if (loop === 'cluster-ip-repair') return 'apiserver_clusterip_repair_reconcile_errors_total';
  return loop === 'node-port-repair' ? 'apiserver_nodeport_repair_reconcile_errors_total' : undefined;
}

/** Returns the metrics of a pass's figures: active leases, and how full the fullest range is. */
export function samplesOf(counts: Readonly<Record<string, number>>): Partial<Readonly<Record<SampleName, number>>> {
  const { activeLeases, allocated, capacity, secondaryAllocated, secondaryCapacity } = counts;
  const shares = [...percentOf(allocated, capacity), ...percentOf(secondaryAllocated, secondaryCapacity)];
  return { ...defined({ activeLeases }), ...(shares.length > 0 && { fullestRangePercent: Math.max(...shares) }) };
}

/** Returns a percentage, rounded down to a tenth, so that only a full range has 100. */
function percentOf(part: number | undefined, whole = 0): number[] {
  return part === undefined || whole <= 0 ? [] : [Math.floor((part / whole) * 1000) / 10];
}

export function logOnly(log: Telemetry['log']): Telemetry {
  return { log, count: () => {}, sample: () => {}, flush: () => {} };
}

/** The parts of an error that may be logged: its code or name, and its message with the messages of its causes. */
export interface ErrorDescription {
  readonly code: string;
  readonly message: string;
}

const MAX_CAUSES = 4;
const MAX_PARTS = 10;
const MAX_STACK_LINES = 20;
const MAX_CODE_LENGTH = 100;
const MAX_MESSAGE_LENGTH = 1000;

export function describeError(error: unknown): ErrorDescription {
  const messages = [ownMessage(error)];
  let next = error;
  for (let causes = 0; next instanceof Error && next.cause !== undefined && causes < MAX_CAUSES; causes++) {
    next = next.cause;
    const message = causeMessage(next);
    if (!messages.some((said) => said.includes(message))) messages.push(message);
  }
  const last = messages.pop() ?? '';
  const whole = [...messages.map((message) => message.replace(/\.$/, '')), last].join(': ');
  return { code: codeOf(error), message: whole.slice(0, MAX_MESSAGE_LENGTH) };
}

/** Returns an error as a text, such as `Code: message: message of the cause`. */
export function errorSentence(error: unknown): string {
  const { code, message } = describeError(error);
  return `${code}: ${message}`;
}

/** Returns the stack trace of an unexpected error. An expected error has a `code` and needs no stack trace. */
export function stackOfFault(error: unknown): readonly string[] | undefined {
  if (!(error instanceof Error) || 'code' in error || error.stack === undefined) return undefined;
  return error.stack
    .split('\n')
    .slice(-MAX_STACK_LINES)
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Unexpected';
  return ('code' in error && typeof error.code === 'string' ? error.code : error.name).slice(0, MAX_CODE_LENGTH);
}

/** Returns the message, cut before any regular expression searches it, because it may contain a long text of a server. */
function ownMessage(error: unknown): string {
  if (!(error instanceof Error)) return `something that is not an error was thrown: ${typeof error}`;
  if (error.message === '' && error instanceof AggregateError) {
    return error.errors.slice(0, MAX_PARTS).map(ownMessage).join(', ');
  }
  return error.message.slice(0, MAX_MESSAGE_LENGTH);
}

/** Returns the first line of the message. For a syntax error, returns only the name: the message may quote a kubeconfig. */
function causeMessage(cause: unknown): string {
  return cause instanceof SyntaxError ? cause.name : (ownMessage(cause).split('\n', 1)[0] ?? '');
}
