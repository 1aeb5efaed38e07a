import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { isRefused, type Refusal } from '../allocator/refusal.ts';
import { answerBudgetMs, withDeadline } from '../runtime/deadline.ts';
import type { TableEnvironment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { repairLoopOf } from '../spec/spec-ranges.ts';
import { CLUSTERS } from '../table/clusters.ts';
import { type ItemKey, TableError } from '../table/key-value-table.ts';
import {
  configuredRange,
  type RangeOptions,
  rangeAllocations,
  refusalOfUnrepaired,
} from '../table/range-allocations.ts';
import { requestKey } from '../table/requests.ts';
import { runKey } from '../table/run-records.ts';
import { readAhead, unwrittenTable } from '../table/table-views.ts';
import { changesInTurn, Turns } from '../table/turns.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { SharedBackOff } from '../util/back-off.ts';
import { type Answer, refusedAnswer } from './answer.ts';
import { executeRequest } from './execute-request.ts';
import { lookUpItems } from './items.ts';
import { type AllocateRequest, parseRequest, type RangeName } from './request.ts';
import {
  groupByRange,
  needsTable,
  noSecondaryRange,
  type OpenRange,
  observeOnly,
  openRequestedCluster,
  type RequestContext,
} from './request-context.ts';

export interface AllocationOptions {
  /** Waits before the next attempt, if other callers change the same range. */
  readonly pause?: (ms: number) => Promise<void>;
  readonly pick?: PickIndex;
  /** Opens a range from which API servers allocate. If this function is absent, requests for such ranges are refused. */
  readonly openHeld?: (
    spec: ClusterSpec,
    range: RangeName,
    options: { readonly pick: PickIndex; readonly dryRun: boolean; readonly signal: AbortSignal },
  ) => Promise<OpenRange | Refusal>;
}

export type AllocationHandler = Handler<Answer, TableEnvironment>;

/** The maximum time for an answer. The timeout of the function is 30 s. */
const LONGEST_MS = 25_000;

/** Returns the handler of requests to allocate, release and look up items. A refusal is an answer, not an error. */
export function allocation({ pause = sleep, pick = randomInt, openHeld }: AllocationOptions = {}): AllocationHandler {
  const backOff = new SharedBackOff(pause, Math.random);
  const turns = new Turns();
  return (event, context) =>
    runInvocation('allocate', context, async (invocation) => {
      const request = parseRequest(event);
      const { environment } = invocation;
      const { nowMs } = environment;
      const budgetMs = answerBudgetMs(invocation.remainingMs, LONGEST_MS);
      const endsAtMs = nowMs() + budgetMs;
      const changes = request.operation !== 'lookUp';
      const wait = (attempt: number, tookMs: number) => backOff.lost(attempt, tookMs);
      const answerUntil = async (signal: AbortSignal) => {
        if (changes) await backOff.begin();
        const { update, retries } = changesInTurn({ turns, signal, nowMs, wait });
        const options = { pick, openHeld, update: { ...update, isCalm: () => backOff.isCalm } };
        const errors: string[] = [];
        const answer = await answerOf(request, environment, { ...options, signal, endsAtMs, errors });
        if (changes) backOff.won();
        logAnswer(invocation, answer, retries(), errors);
        return answer;
      };
      return withDeadline(environment, budgetMs, answerUntil).catch((error: unknown) => {
        throw error instanceof TableError ? notFinished(request, error) : error;
      });
    });
}

interface Work {
  readonly pick: PickIndex;
  readonly update: RangeOptions;
  readonly openHeld: AllocationOptions['openHeld'];
  readonly signal: AbortSignal;
  readonly endsAtMs: number;
  readonly errors: string[];
}

async function answerOf(request: AllocateRequest, environment: TableEnvironment, work: Work): Promise<Answer> {
  const { pick, update, openHeld, signal, endsAtMs, errors } = work;
  const { nowMs, stack } = environment;
  const refuse = (refusal: Refusal, range?: string) => refusedAnswer(request, refusal, (item) => item.range === range);
  const stored = await readAhead(environment.table(signal), keysOf(request));
  const cluster = await openRequestedCluster(stored, request, stack);
  if (isRefused(cluster)) return refuse(cluster);
  const { dryRun = false } = request;
  const table = dryRun ? unwrittenTable(stored, { nowMs }) : stored;
  const { spec } = cluster;
  const isTheirs = spec.allocator === 'apiserver';
  const unsupported = isTheirs ? needsTable(request, openHeld !== undefined) : undefined;
  if (unsupported !== undefined) return refuse(unsupported);
  const ranges = await groupByRange(request, (name) => {
    if (isTheirs && openHeld) return openHeld(spec, name, { pick, dryRun, signal });
    const range = configuredRange(cluster, `ranges/${name}`, pick);
    if (range === undefined) return noSecondaryRange(spec.name, spec.serviceClusterIPRanges[0]);
    return rangeAllocations(table, range, update);
  });
  if ('refusal' in ranges) return refuse(ranges.refusal, ranges.range);
  const keys = ranges.map(({ name }) => `ranges/${name}` as const);
  const context: RequestContext = {
    request,
    ranges,
    table,
    observeOnly: observeOnly(spec),
    // API servers record their own allocations, so they need no recent repair.
    refusalOfUnrepaired: async () => (isTheirs ? undefined : refusalOfUnrepaired(table, spec, keys, nowMs())),
    nowMs,
    endsAtMs,
    warn: (error) => void errors.push(errorSentence(error)),
  };
  const answer = await (request.operation === 'lookUp' ? lookUpItems(context) : executeRequest(context));
  return dryRun ? { ...answer, dryRun } : answer;
}

/** Returns the keys of the table items that a request needs at its beginning. */
function keysOf({ cluster, operation, requestId, items }: AllocateRequest): readonly ItemKey[] {
  const ranges = [...new Set(items.map(({ range }) => `ranges/${range}` as const))];
  const loops = operation === 'allocate' ? new Set(ranges.map(repairLoopOf)) : [];
  const keys = [...ranges, ...[...loops].map(runKey), ...(operation === 'lookUp' ? [] : [requestKey(requestId)])];
  return [{ cluster: CLUSTERS, key: cluster }, ...keys.map((key) => ({ cluster, key }))];
}

function logAnswer(
  { telemetry }: Invocation<TableEnvironment>,
  answer: Answer,
  retries: number,
  errors: readonly string[],
): void {
  const { cluster, requestId, operation, outcome, items, error, replayed = false, dryRun = false } = answer;
  const level = outcome === 'done' && errors.length === 0 ? 'info' : 'warn';
  telemetry.log(level, `allocate: ${outcome}`, {
    cluster,
    request: requestId,
    operation,
    items: items.length,
    retries,
    ...(error !== undefined && { reason: `${error.code}: ${error.message}` }),
    ...(replayed && { replayed }),
    ...(dryRun && { dryRun }),
    ...(errors.length > 0 && { errors }),
  });
  telemetry.count('allocationRetries', retries);
  if (replayed || dryRun) return;
  const allocated = items.filter((item) => item.outcome === 'allocated').length;
  telemetry.count('allocations', allocated);
  if (error !== undefined) telemetry.count('allocationsRefused', 1, error.code);
}

/** Returns an error with the code in the message, because Lambda passes only the name and message of an error to the caller. */
function notFinished({ requestId, operation, dryRun }: AllocateRequest, error: TableError): TableError {
  const { code, message } = error;
  const again =
    operation === 'lookUp' || dryRun
      ? 'invoke it again'
      : 'invoke it again with the same requestId: it resumes where this one ended';
  return new TableError(code, `${code}: request ${requestId} was not finished, ${again}. ${message}`, { cause: error });
}
