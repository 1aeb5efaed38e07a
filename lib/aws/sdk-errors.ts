import { isNativeError } from 'node:util/types';

const DENIED = new Set(['AccessDeniedException', 'AccessDenied']);

const THROTTLED = new Set([
  'LimitExceededException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
]);

/** Their messages may contain parts of the request's signature, and are never passed on. */
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
  return THROTTLED.has(nameOfError(error)) || statusOf(error) === 429;
}

/** Returns the HTTP status of the answer; `undefined` when nothing answered. */
export function statusOf(error: unknown): number | undefined {
  return metadataOf(error)?.httpStatusCode;
}

/** Returns how many attempts the SDK made; `undefined` if the error does not contain it. */
export function attemptsOf(error: unknown): number | undefined {
  return metadataOf(error)?.attempts;
}

interface Metadata {
  readonly attempts?: number;
  readonly httpStatusCode?: number;
}

function metadataOf(error: unknown): Metadata | undefined {
  const hasMetadata = typeof error === 'object' && error !== null && '$metadata' in error;
  return hasMetadata ? (error.$metadata as Metadata) : undefined;
}
