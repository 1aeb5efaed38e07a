import { SQSClient } from '@aws-sdk/client-sqs';
import { NodeHttpHandler } from '@smithy/node-http-handler';

export interface SqsClientOptions {
  /** The queue is not where its URL says but at `AWS_ENDPOINT_URL`, as with an emulator. */
  readonly endpointIsSet?: boolean;
  /** Attempts of one call, the first included. Default 2: the minute's tick does without the queue. */
  readonly maxAttempts?: number;
  /** Default 500 ms. */
  readonly connectionTimeoutMs?: number;
  /** Longest wait for a reply, and longest silence within one. Default 1.5 s. */
  readonly requestTimeoutMs?: number;
}

/** One client for a process. By default a call is over within about 4 s whatever happens. */
export function createSqsClient(options: SqsClientOptions = {}): SQSClient {
  const { endpointIsSet = false, maxAttempts = 2, connectionTimeoutMs = 500, requestTimeoutMs = 1500 } = options;
  return new SQSClient({
    ...(endpointIsSet && { useQueueUrlAsEndpoint: false }),
    maxAttempts,
    retryMode: 'standard',
    requestHandler: new NodeHttpHandler({
      connectionTimeout: connectionTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Without this the handler only warns and goes on waiting.
      throwOnRequestTimeout: true,
      socketTimeout: requestTimeoutMs,
    }),
  });
}
