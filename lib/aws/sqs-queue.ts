import { GetQueueAttributesCommand, SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { CodedError } from '../cluster/coded-error.ts';

export interface OutgoingMessage {
  readonly body: string;
  /** Whole seconds until it can be received. */
  readonly delaySeconds: number;
}

/** A message that is not known to be in the queue, but may be. */
export interface Unsent<Message> {
  readonly message: Message;
  readonly error: QueueError;
}

/** Where ticks wait until they are due. A message may be received twice. */
export interface MessageQueue {
  /** Sends what it can until the signal aborts. Never throws. @returns what was not sent. */
  send<Message extends OutgoingMessage>(
    messages: readonly Message[],
    signal: AbortSignal,
  ): Promise<readonly Unsent<Message>[]>;
}

export type QueueErrorCode = 'QueueMissing' | 'AccessDenied' | 'Unavailable';

/** Why a message was not sent. The message says what failed and what to do. */
export class QueueError extends CodedError<QueueErrorCode> {
  override readonly name = 'QueueError';
}

/** As many as SQS accepts in one call. */
const BATCH_SIZE = 10;
const CONCURRENT_CALLS = 16;

/** A queue of SQS: standard, not FIFO, which knows no delay of a single message. */
export function sqsQueue(client: SQSClient, url: string): MessageQueue {
  return {
    send: async (messages, signal) => {
      const unsent: Unsent<(typeof messages)[number]>[] = [];
      const batches = batchesOf(messages);
      const sender = async (): Promise<void> => {
        for (const batch of batches) unsent.push(...(await sendBatch(client, url, batch, signal)));
      };
      await Promise.all(Array.from({ length: CONCURRENT_CALLS }, sender));
      return unsent;
    },
  };
}

function* batchesOf<Message>(messages: readonly Message[]): Generator<readonly Message[]> {
  for (let start = 0; start < messages.length; start += BATCH_SIZE) yield messages.slice(start, start + BATCH_SIZE);
}

async function sendBatch<Message extends OutgoingMessage>(
  client: SQSClient,
  url: string,
  batch: readonly Message[],
  signal: AbortSignal,
): Promise<Unsent<Message>[]> {
  const Entries = batch.map(({ body, delaySeconds }, index) => ({
    Id: String(index),
    MessageBody: body,
    DelaySeconds: delaySeconds,
  }));
  try {
    signal.throwIfAborted();
    const command = new SendMessageBatchCommand({ QueueUrl: url, Entries });
    const { Failed = [] } = await client.send(command, { abortSignal: signal });
    return Failed.flatMap(({ Id, Code, Message: reason }) => {
      const message = batch[Number(Id)];
      const why = `${Code ?? 'no code'}: ${reason ?? 'no reason is given'}`;
      return message === undefined ? [] : [{ message, error: refused(url, why) }];
    });
  } catch (error) {
    const failure = queueError(error, url, signal);
    return batch.map((message) => ({ message, error: failure }));
  }
}

function refused(url: string, why: string): QueueError {
  return new QueueError('Unavailable', `sqs:SendMessage to ${url} refused a message of a batch (${why}).`);
}

const CODES: ReadonlyMap<string, QueueErrorCode> = new Map([
  ['QueueDoesNotExist', 'QueueMissing'],
  ['AWS.SimpleQueueService.NonExistentQueue', 'QueueMissing'],
  ['AccessDenied', 'AccessDenied'],
  ['AccessDeniedException', 'AccessDenied'],
]);

const REMEDIES: Readonly<Record<QueueErrorCode, string>> = {
  QueueMissing: 'deploy the stack that makes it, or correct TICK_QUEUE_URL.',
  AccessDenied: 'allow sqs:SendMessage on this queue to the role of this function.',
  Unavailable: 'see the cause; functions in a private network need an endpoint for SQS or a NAT gateway.',
};

function queueError(error: unknown, url: string, signal: AbortSignal): QueueError {
  const name = error instanceof Error ? error.name : 'unknown error';
  const code = CODES.get(name) ?? 'Unavailable';
  const what = signal.aborted ? 'was given up when its time was over' : `failed (${name})`;
  return new QueueError(code, `sqs:SendMessage to ${url} ${what}: ${REMEDIES[code]}`, { cause: error });
}

/** About how many messages wait in a queue, those too whose time has not come. Throws what the AWS SDK throws. */
export type QueueDepth = (url: string, signal: AbortSignal) => Promise<number>;

export function sqsQueueDepth(client: SQSClient): QueueDepth {
  return async (url, abortSignal) => {
    const command = new GetQueueAttributesCommand({
      QueueUrl: url,
      AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesDelayed'],
    });
    const { Attributes = {} } = await client.send(command, { abortSignal });
    return Object.values(Attributes).reduce((sum, count) => sum + (Number(count) || 0), 0);
  };
}

export interface SqsClientOptions {
  /** The queue is not at its URL but at `AWS_ENDPOINT_URL`, as with an emulator. */
  readonly endpointIsSet: boolean;
}

/** The minute's tick does without the queue: a second attempt is enough. */
const MAX_ATTEMPTS = 2;
const CONNECTION_TIMEOUT_MS = 500;
/** Longest wait for a reply, and longest silence within one. */
const REQUEST_TIMEOUT_MS = 1_500;

/** Returns one client for a process. A call is over within about 4 s whatever happens. */
export function createSqsClient({ endpointIsSet }: SqsClientOptions): SQSClient {
  return new SQSClient({
    ...(endpointIsSet && { useQueueUrlAsEndpoint: false }),
    maxAttempts: MAX_ATTEMPTS,
    retryMode: 'standard',
    requestHandler: new NodeHttpHandler({
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      // Without this the handler only warns and continues to wait.
      throwOnRequestTimeout: true,
      socketTimeout: REQUEST_TIMEOUT_MS,
    }),
  });
}
