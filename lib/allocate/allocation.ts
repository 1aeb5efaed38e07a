import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pick } from '../allocator/bitmap.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { TableError } from '../table/errors.ts';
import type { KeyValueTable } from '../table/key-value-table.ts';
import { refusalOfUnrepaired } from '../table/run-records.ts';
import { unwrittenTable } from '../table/unwritten-table.ts';
import { errorSentence } from '../telemetry/describe-error.ts';
import { type Answer, type Refusal, refused } from './answer.ts';
import { executeRequest } from './execute-request.ts';
import { lookUpItems } from './items.ts';
import { KEYS, openCluster, openRange } from './open-range.ts';
import { type AllocateRequest, parseRequest, requestedItems } from './request.ts';
import { groupByRange } from './request-context.ts';

export interface AllocationOptions {
  /** Waits so long for others who change the same range. */
  readonly pause?: (ms: number) => Promise<void>;
  /** Which free item is given. Default: any, at random. */
  readonly pick?: Pick;
}

export type AllocationHandler = Handler<Answer>;

/** The function ends at 30 s. */
const LONGEST_MS = 25_000;
const CLOSING_MS = 1_000;

/** What ends the attempts of an invocation to change a range is its time. */
const ATTEMPTS = 1_000;

/** The handler of those who allocate, release and look up through the table. A refusal is an answer. */
export function allocation({ pause, pick = randomInt }: AllocationOptions = {}): AllocationHandler {
  const backoff = new Backoff(pause);
  return (event, context) =>
    runInvocation('allocate', context, async (invocation) => {
      const request = parseRequest(event);
      const { environment, remainingMs } = invocation;
      const budgetMs = Math.max(0, Math.min(LONGEST_MS, remainingMs() - CLOSING_MS));
      const endsAtMs = environment.nowMs() + budgetMs;
      const deadline = environment.startDeadline(budgetMs);
      const told: Told = { retries: 0, errors: [] };
      const wait = () => {
        told.retries += 1;
        return backoff.lost();
      };
      try {
        if (request.operation !== 'lookUp') await backoff.begin();
        const options = { pick, update: { attempts: ATTEMPTS, wait } };
        const answer = await answerOf(request, invocation, { signal: deadline.signal, endsAtMs }, options, told);
        if (request.operation !== 'lookUp') backoff.won();
        tell(invocation, answer, told);
        return answer;
      } catch (error) {
        throw error instanceof TableError ? notFinished(request, error) : error;
      } finally {
        deadline.cancel();
      }
    });
}

/** What the log line and the metrics say beside the answer. */
interface Told {
  retries: number;
  readonly errors: string[];
}

async function answerOf(
  request: AllocateRequest,
  { environment }: Invocation,
  { signal, endsAtMs }: { readonly signal: AbortSignal; readonly endsAtMs: number },
  options: Parameters<typeof openRange>[3],
  told: Told,
): Promise<Answer> {
  const { nowMs, stack } = environment;
  const requested = requestedItems(request);
  const refuse = (refusal: Refusal, range?: string) =>
    refused(request, requested, refusal, (index) => requested[index]?.range === range);
  const stored = environment.table(signal);
  const cluster = await openCluster(stored, request, stack);
  if ('code' in cluster) return refuse(cluster);
  const table = request.dryRun === true ? dry(stored, nowMs) : stored;
  const ranges = groupByRange(requested, (name) => openRange(table, cluster, name, options));
  if ('refusal' in ranges) return refuse(ranges.refusal, ranges.range);
  const leftBehind = (error: TableError) => void told.errors.push(errorSentence(error));
  const keys = ranges.map(({ name }) => KEYS[name]);
  const unrepaired = () => refusalOfUnrepaired(table, cluster.spec, keys, nowMs());
  const context = {
    request,
    requested,
    ranges,
    table,
    refusalOfUnrepaired: unrepaired,
    nowMs,
    endsAtMs,
    warn: leftBehind,
  };
  const dryRun = request.dryRun === true && { dryRun: true as const };
  if (request.operation === 'lookUp') return { ...(await lookUpItems(context)), ...dryRun };
  const { answer, replayed } = await executeRequest(context);
  return { ...answer, ...(replayed && { replayed }), ...dryRun };
}

/** What would be written is kept for the rest of the invocation alone. */
function dry(table: KeyValueTable, nowMs: () => number): KeyValueTable {
  let writes = 0;
  return unwrittenTable(table, { nowMs, newWriteId: () => `dry-${++writes}` });
}

function tell({ telemetry }: Invocation, answer: Answer, { retries, errors }: Told): void {
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
  telemetry.count('allocationRetries', retries, { cluster });
  if (replayed || dryRun) return;
  const allocated = items.filter((item) => item.outcome === 'allocated').length;
  telemetry.count('allocations', allocated, { cluster });
  if (error !== undefined) telemetry.count('allocationsRefused', 1, { type: error.code, cluster });
}

/** Lambda's caller gets name and message of what is thrown, and so the message begins with the code. */
function notFinished({ requestId, operation, dryRun }: AllocateRequest, error: TableError): TableError {
  const { code, message } = error;
  const again =
    operation === 'lookUp' || dryRun === true
      ? 'invoke it again'
      : 'invoke it again with the same requestId: it resumes where this one ended';
  return new TableError(code, `${code}: request ${requestId} was not finished, ${again}. ${message}`, { cause: error });
}

const SHORTEST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 2_000;

/**
 * How long those who change one range at the same time wait for one another. A loss makes the waits twice as long, a win
 * half as long, and a warm function remembers that for its next invocation: under many callers, who comes new waits like
 * those who wait already, or they would never have their turn.
 */
export class Backoff {
  readonly #pause: (ms: number) => Promise<void>;
  #windowMs = SHORTEST_WAIT_MS;

  /** `pause` is for tests. */
  constructor(pause: (ms: number) => Promise<void> = (ms) => sleep(ms)) {
    this.#pause = pause;
  }

  /** Before the first attempt: at once, unless there was a crowd lately. */
  async begin(): Promise<void> {
    if (this.#windowMs > SHORTEST_WAIT_MS) await this.#wait();
  }

  /** After an attempt that another came before. */
  async lost(): Promise<void> {
    this.#windowMs = Math.min(2 * this.#windowMs, LONGEST_WAIT_MS);
    await this.#wait();
  }

  won(): void {
    this.#windowMs = Math.max(this.#windowMs / 2, SHORTEST_WAIT_MS);
  }

  /** At random, so that not all of them come again together. */
  #wait(): Promise<void> {
    return this.#pause(Math.random() * this.#windowMs);
  }
}
