import { DynamoDBClient, type DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';
import { type CallLimits, clientOptions } from '../aws/client-options.ts';

export interface DynamoClientOptions extends Partial<CallLimits> {
  /** Default: that of the AWS SDK. */
  readonly region?: string;
  /** A profile of the AWS CLI. */
  readonly profile?: string;
  readonly endpoint?: string;
  readonly credentials?: NonNullable<DynamoDBClientConfig['credentials']>;
}

const LIMITS: CallLimits = {
  maxAttempts: 3,
  maxRetryDelayMs: 1_000,
  connectionTimeoutMs: 500,
  requestTimeoutMs: 1_500,
};

/**
 * Creates the client of a process. With the default limits a call ends within about 7 s, which fits a pass of ten; the
 * deadline of the pass may end it sooner.
 */
export function createDynamoClient(options: DynamoClientOptions = {}): DynamoDBClient {
  const { region, profile, endpoint, credentials } = options;
  return new DynamoDBClient({
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials !== undefined && { credentials }),
    logger: QUIET,
    ...clientOptions({ ...LIMITS, ...options }),
  });
}

/** Without `info`, which the SDK calls for every request after copying each item. */
const QUIET = { trace() {}, debug() {}, warn() {} } as unknown as NonNullable<DynamoDBClientConfig['logger']>;
