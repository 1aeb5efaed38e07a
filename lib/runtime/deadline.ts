import { unlessAborted } from '../cluster/unless-aborted.ts';
import { DispatchError } from './errors.ts';

/** A signal that aborts when the time is over, with a `DispatchError` of code `DeadlineExceeded`. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Stops the clock. Always called, or the process waits for it. */
  readonly cancel: () => void;
}

export type StartDeadline = (ms: number) => Deadline;

export const startDeadline: StartDeadline = (ms) => {
  const controller = new AbortController();
  const timer = setTimeout(
    () => {
      controller.abort(deadlineExceeded(ms));
    },
    Math.max(0, ms),
  );
  return {
    signal: controller.signal,
    cancel: () => {
      clearTimeout(timer);
    },
  };
};

function deadlineExceeded(ms: number): DispatchError {
  return new DispatchError(
    'DeadlineExceeded',
    `Not done within ${(ms / 1000).toFixed(1)} s; the next pass reads everything again.`,
  );
}

interface Clock {
  readonly startDeadline: StartDeadline;
}

/** Returns the result of `work`, which obeys a deadline of its own. */
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

/** Returns the result of `work`, but throws the deadline's reason if `work` has not ended by then. */
export function withinDeadline<T>(clock: Clock, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline(clock, ms, (signal) => unlessAborted(signal, () => work(signal)));
}

/** Waits for the end of a deadline that is a pause, or for the signal. */
export async function pause({ signal: over, cancel }: Deadline, signal: AbortSignal): Promise<void> {
  const either = AbortSignal.any([over, signal]);
  if (!either.aborted) {
    await new Promise<void>((resolve) => {
      either.addEventListener('abort', () => resolve(), { once: true });
    });
  }
  cancel();
}
