import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { StandardRetryStrategy } from '@smithy/core/retry';
import { NodeHttpHandler } from '@smithy/node-http-handler';

export interface DynamoClientOptions {
  /** Default: as the AWS SDK finds it in the environment. */
  readonly region?: string;
  /** Of the files of the AWS CLI. */
  readonly profile?: string;
  readonly endpoint?: string;
  readonly credentials?: NonNullable<DynamoDBClientConfig['credentials']>;
  /** Attempts of one call, the first included. Default 3. */
  readonly maxAttempts?: number;
  /** Longest wait between two attempts, throttled or not. Default 1 s. */
  readonly maxRetryDelayMs?: number;
  /** Default 500 ms. */
  readonly connectionTimeoutMs?: number;
  /** Longest wait for a reply, and longest silence within one. Default 1.5 s. */
  readonly requestTimeoutMs?: number;
}

/**
 * One client for a process. By default a call is over within about 7 s whatever happens, which fits a pass of ten; the
 * deadline of the pass may end it sooner.
 */
export function createDynamoClient(options: DynamoClientOptions = {}): DynamoDBClient {
  const { region, profile, endpoint, credentials } = options;
  const { maxAttempts = 3, maxRetryDelayMs = 1000, connectionTimeoutMs = 500, requestTimeoutMs = 1500 } = options;
  return new DynamoDBClient({
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
    logger: QUIET,
    maxAttempts,
    retryMode: 'standard',
    retryStrategy: new StandardRetryStrategy({ maxAttempts, backoff: cappedBackoff(maxRetryDelayMs) }),
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without this the handler only warns and goes on waiting.
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
    }),
  });
}

/**
 * Without the two that the SDK tells every call: for a logger that throws it away it would copy each item first, field by
 * field.
 */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig['logger']>;

/** The SDK's exponential wait with full jitter, but never longer than `maxMs`: throttles alone would ask for seconds. */
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
