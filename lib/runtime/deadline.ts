import { once } from 'node:events';
import type { Loop } from '../spec/cluster-spec.ts';
import { unlessAborted } from '../util/async.ts';
import { CodedError } from '../util/values.ts';

/** The longest time of one pass, however much time the function has. */
export const PASS_BUDGET_MS: Readonly<Record<Loop, number>> = {
  'system-namespaces': 20_000,
  // A longer pass would overlap the next pass.
  'kubernetes-service': 9_000,
  'cluster-ip-repair': 120_000,
  'node-port-repair': 120_000,
};

/** The time limit for the first read of the table, whose reply contains the table's time. */
export const MEASURING_MS = 2_000;
export const LISTING_MS = 10_000;
export const QUEUEING_MS = 5_000;
export const FIGURES_MS = 20_000;
export const RECORDING_MS = 3_000;
/** The time that is reserved, at the end of an invocation, to record and log its results. */
export const CLOSING_MS = RECORDING_MS + 1_000;
/** The time that is reserved, at the end of an invocation, to answer its caller. */
export const ANSWERING_MS = 1_000;

/** The number of simultaneous passes: enough that a few hanging clusters do not delay others, few enough for a small function. */
export const CONCURRENT_PASSES = 16;

export const CONCURRENT_READS = 32;

export type DispatchErrorCode =
  | 'BadEvent'
  /** An environment variable is missing or invalid. */
  | 'BadEnvironment'
  | 'NotRegistered'
  /** Work was abandoned because its time, or the time of the function, was over. */
  | 'DeadlineExceeded';

export class DispatchError extends CodedError<DispatchErrorCode> {
  override readonly name = 'DispatchError';
}

/** A time limit. `signal` aborts when the time is over, with a `DispatchError` of code `DeadlineExceeded`. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Stops the timer. The caller must always call it: otherwise the process waits for the timer. */
  readonly cancel: () => void;
}

export type StartDeadline = (ms: number) => Deadline;

export const startDeadline: StartDeadline = (ms) => {
  const controller = new AbortController();
  const expire = () => {
    const message = `Not done within ${(ms / 1000).toFixed(1)} s; the next pass reads everything again.`;
    controller.abort(new DispatchError('DeadlineExceeded', message));
  };
  const timer = setTimeout(expire, Math.max(0, ms));
  return { signal: controller.signal, cancel: () => clearTimeout(timer) };
};

interface Clock {
  readonly startDeadline: StartDeadline;
}

/** Returns the result of `work`, which gets a deadline and must end before this deadline. */
export async function withDeadline<T>(
  { startDeadline: start }: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, cancel } = start(Math.max(0, ms));
  try {
    return await work(signal);
  } finally {
    cancel();
  }
}

/** Returns the result of `work`, but throws the deadline's reason if `work` has not ended at the deadline. */
export function withinDeadline<T>(clock: Clock, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline(clock, ms, (signal) => unlessAborted(signal, () => work(signal)));
}

/** Returns the result of `work`, whose deadline leaves the invocation enough time to record and log the result. */
export function withinInvocation<T>(
  { environment, remainingMs }: { readonly environment: Clock; readonly remainingMs: () => number },
  longestMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withinDeadline(environment, Math.min(longestMs, remainingMs() - CLOSING_MS), work);
}

/** Returns how long the work for a caller may take, so that the invocation can still answer. */
export function answerBudgetMs(remainingMs: () => number, longestMs: number): number {
  return Math.max(0, Math.min(longestMs, remainingMs() - ANSWERING_MS));
}

/** Waits until the deadline is reached or the signal aborts. */
export async function pause({ signal: over, cancel }: Deadline, signal: AbortSignal): Promise<void> {
  const either = AbortSignal.any([over, signal]);
  if (!either.aborted) await once(either, 'abort');
  cancel();
}
