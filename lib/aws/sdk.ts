import { isNativeError } from 'node:util/types';
import { StandardRetryStrategy } from '@smithy/core/retry';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { anyPartOf, doubledMs } from '../util/back-off.ts';
import { defined } from '../util/values.ts';

/** The region and the identity of a client. If they are absent, the AWS SDK chooses them. */
export interface AwsAccount {
  readonly region?: string | undefined;
  readonly profile?: string | undefined;
}

export interface CallLimits {
  readonly maxAttempts: number;
  /** The longest wait between two attempts, also after throttling. */
  readonly maxRetryDelayMs: number;
  readonly connectionTimeoutMs: number;
  /** The longest wait for a reply, and the longest silence within a reply. */
  readonly requestTimeoutMs: number;
}

/** The default limits end a call within about 3.2 s, so that a pass has time left to report an unreachable service. */
export function clientOptions({
  region,
  profile,
  maxAttempts = 2,
  maxRetryDelayMs = 200,
  connectionTimeoutMs = 1_000,
  requestTimeoutMs = 1_500,
}: AwsAccount & Partial<CallLimits>) {
  return {
    ...defined({ region, profile }),
    maxAttempts,
    retryStrategy: new StandardRetryStrategy({ maxAttempts, backoff: cappedBackoff(maxRetryDelayMs) }),
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without this option the handler only warns and waits longer.
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
    }),
  };
}

/** Returns an exponential backoff with full jitter as in the SDK, but waits at most `maxMs`, also after throttling. */
function cappedBackoff(maxMs: number) {
  let baseMs = 50;
  return {
    setDelayBase: (delayMs: number): void => {
      baseMs = delayMs;
    },
    computeNextBackoffDelay: (attempt: number): number =>
      Math.floor(anyPartOf(doubledMs(baseMs, attempt, maxMs), Math.random)),
  };
}

const DENIED = new Set(['AccessDeniedException', 'AccessDenied']);

const THROTTLED = new Set([
  'LimitExceededException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
]);

/** The codes of errors whose messages may contain parts of the signature of a request. Such a message is never shown. */
const NOT_AUTHENTICATED = new Set([
  'CredentialsProviderError',
  'ExpiredToken',
  'ExpiredTokenException',
  'IncompleteSignature',
  'IncompleteSignatureException',
  'InvalidClientTokenId',
  'InvalidSignatureException',
  'MissingAuthenticationTokenException',
  'SignatureDoesNotMatch',
  'TokenProviderError',
  'UnrecognizedClientException',
]);

export function nameOfError(error: unknown): string {
  return isNativeError(error) ? error.name : 'unknown error';
}

export function isDenied(error: unknown): boolean {
  return DENIED.has(nameOfError(error));
}

export function isNotAuthenticated(error: unknown): boolean {
  return NOT_AUTHENTICATED.has(nameOfError(error));
}

export function isThrottled(error: unknown): boolean {
  return THROTTLED.has(nameOfError(error)) || httpStatusOf(error) === 429;
}

/** Returns the HTTP status of the answer; `undefined` if there was no answer. */
export function httpStatusOf(error: unknown): number | undefined {
  return metadataOf(error)?.httpStatusCode;
}

/** Returns how many attempts the SDK made; `undefined` if the error does not contain the number. */
export function attemptsOf(error: unknown): number | undefined {
  return metadataOf(error)?.attempts;
}

function metadataOf(error: unknown) {
  const hasMetadata = typeof error === 'object' && error !== null && '$metadata' in error;
  return hasMetadata ? (error.$metadata as { attempts?: number; httpStatusCode?: number }) : undefined;
}
