import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { GetQueueAttributesCommand, SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { batchesOf, eachOf } from '../cluster/async.ts';
import { CodedError } from '../cluster/values.ts';
import { type CallLimits, clientOptions } from './sdk.ts';
import { storeClientOptions } from './store-client.ts';

export interface OutgoingMessage {
  readonly body: string;
  /** Whole seconds until the message can be received. */
  readonly delaySeconds: number;
}

/** A message that may or may not be in the queue. */
export interface Unsent<Message> {
  readonly message: Message;
  readonly error: QueueError;
}

/** The queue in which ticks wait until they are due. A message may be received twice. */
export interface MessageQueue {
  /**
   * Sends as many messages as possible until the signal aborts. Never throws.
   * @returns the messages that were not sent.
   */
  send<Message extends OutgoingMessage>(
    messages: readonly Message[],
    signal: AbortSignal,
  ): Promise<readonly Unsent<Message>[]>;
}

export type QueueErrorCode = 'QueueMissing' | 'AccessDenied' | 'Unavailable';

/** The reason why a message was not sent. The message states what failed and what to do. */
export class QueueError extends CodedError<QueueErrorCode> {
  override readonly name = 'QueueError';
}

/** The limit of SQS and of EventBridge for one call. */
const BATCH_SIZE = 10;
const CONCURRENT_CALLS = 16;

/** Returns a queue of SQS: standard, because a FIFO queue cannot delay a single message. */
export function sqsQueue(client: SQSClient, url: string): MessageQueue {
  return {
    send: async (messages, signal) => {
      const batches = batchesOf(messages, BATCH_SIZE);
      const unsent = await eachOf(batches, CONCURRENT_CALLS, (batch) => sendBatch(client, url, batch, signal));
      return unsent.flat();
    },
  };
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
  QueueMissing: 'deploy the stack that has it, or correct TICK_QUEUE_URL.',
  AccessDenied: 'allow sqs:SendMessage on this queue to the role of this function.',
  Unavailable: 'see the cause; functions in a private network need an endpoint for SQS or a NAT gateway.',
};

function queueError(error: unknown, url: string, signal: AbortSignal): QueueError {
  const name = error instanceof Error ? error.name : 'unknown error';
  const code = CODES.get(name) ?? 'Unavailable';
  const what = signal.aborted ? 'was ended at its deadline' : `failed (${name})`;
  return new QueueError(code, `sqs:SendMessage to ${url} ${what}: ${REMEDIES[code]}`, { cause: error });
}

/** Returns the approximate number of messages in a queue, including delayed ones. Throws errors of the AWS SDK. */
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

/** The minute's invocation can do without the queue: a second attempt is enough. A call ends within about 4 s. */
const LIMITS: CallLimits = {
  maxAttempts: 2,
  maxRetryDelayMs: 1_000,
  connectionTimeoutMs: 500,
  requestTimeoutMs: 1_500,
};

/**
 * Returns the client of a process.
 * @param options.endpointIsSet the queue is at `AWS_ENDPOINT_URL` instead of its own URL, as in an emulator
 */
export function createSqsClient({ endpointIsSet }: { readonly endpointIsSet: boolean }): SQSClient {
  return new SQSClient({ ...(endpointIsSet && { useQueueUrlAsEndpoint: false }), ...clientOptions(LIMITS) });
}

/** Publishes changes of clusters. An event may be received twice. */
export interface EventBus {
  /** Publishes as many events as possible until the signal aborts. Never throws. */
  publish(details: readonly object[], signal: AbortSignal): Promise<Published>;
}

export interface Published {
  readonly unpublished: number;
  readonly errors: readonly Error[];
}

export const EVENT_SOURCE = 'kube-bootstrap-controller';
export const EVENT_TYPE = 'Cluster State Change';

class EventBusError extends CodedError<'Unavailable'> {
  override readonly name = 'EventBusError';
}

/** Returns the default event bus of this account and region. Its client is created with the first event. */
export function defaultEventBus(): EventBus {
  let client: EventBridgeClient | undefined;
  return {
    publish: async (details, abortSignal) => {
      client ??= new EventBridgeClient(storeClientOptions({}));
      const errors: Error[] = [];
      let unpublished = 0;
      for (const batch of batchesOf(details, BATCH_SIZE)) {
        const Entries = batch.map((detail) => {
          return { Source: EVENT_SOURCE, DetailType: EVENT_TYPE, Detail: JSON.stringify(detail) };
        });
        try {
          const answer = await client.send(new PutEventsCommand({ Entries }), { abortSignal });
          const refused = (answer.Entries ?? []).filter(({ ErrorCode }) => ErrorCode !== undefined);
          unpublished += refused.length;
          errors.push(...refused.map(({ ErrorCode, ErrorMessage }) => failed(`${ErrorCode}: ${ErrorMessage}`)));
        } catch (error) {
          unpublished += batch.length;
          errors.push(failed(error instanceof Error ? error.name : 'unknown error', error));
        }
      }
      return { unpublished, errors };
    },
  };
}

function failed(why: string, cause?: unknown): EventBusError {
  const remedy = 'Functions in a private network need an endpoint for EventBridge (events) or a NAT gateway.';
  return new EventBusError('Unavailable', `events:PutEvents failed (${why}). ${remedy}`, { cause });
}
