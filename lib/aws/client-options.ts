import { StandardRetryStrategy } from '@smithy/core/retry';
import { NodeHttpHandler } from '@smithy/node-http-handler';

/** The limits of one call to AWS. */
export interface CallLimits {
  /** Attempts, including the first. */
  readonly maxAttempts: number;
  /** The longest wait between two attempts, throttled or not. */
  readonly maxRetryDelayMs: number;
  readonly connectionTimeoutMs: number;
  /** The longest wait for a reply, and the longest silence within one. */
  readonly requestTimeoutMs: number;
}

/** Returns the options of a client whose calls end within their limits. */
export function clientOptions({ maxAttempts, maxRetryDelayMs, connectionTimeoutMs, requestTimeoutMs }: CallLimits) {
  return {
    maxAttempts,
    retryStrategy: new StandardRetryStrategy({ maxAttempts, backoff: cappedBackoff(maxRetryDelayMs) }),
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without this the handler only warns and waits longer.
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
    }),
  };
}

/**
 * Returns the SDK's exponential wait with full jitter, capped at `maxMs`: after throttling alone it would be seconds.
 */
function cappedBackoff(maxMs: number) {
  let baseMs = 50;
  return {
    setDelayBase: (delayMs: number): void => {
      baseMs = delayMs;
    },
    computeNextBackoffDelay: (attempt: number): number =>
      Math.floor(Math.random() * Math.min(baseMs * 2 ** attempt, maxMs)),
  };
}
