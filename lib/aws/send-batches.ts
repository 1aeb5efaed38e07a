import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { GetQueueAttributesCommand, SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { batchesOf, eachOf } from '../util/async.ts';
import { CodedError } from '../util/values.ts';
import { clientOptions, nameOfError } from './sdk.ts';

export interface OutgoingMessage {
  readonly body: string;
  readonly delaySeconds: number;
}

/** An unsent message, or a message that may or may not have been sent. */
export interface Unsent<Message> {
  readonly message: Message;
  readonly error: SendError;
}

/** Sends messages. Each message may be received twice. */
export interface Sender<Sent> {
  /** Sends as many messages as possible until the signal aborts. Never throws. Returns the messages that were not sent. */
  send<Message extends Sent>(messages: readonly Message[], signal: AbortSignal): Promise<readonly Unsent<Message>[]>;
}

/** The queue in which ticks wait until they are due. */
export type MessageQueue = Sender<OutgoingMessage>;
export type EventBus = Sender<object>;

type SendErrorCode = 'QueueMissing' | 'AccessDenied' | 'Unavailable';

export class SendError extends CodedError<SendErrorCode> {
  override readonly name = 'SendError';
}

/** The limit of SQS and of EventBridge for one call. */
const BATCH_SIZE = 10;
const CONCURRENT_CALLS = 16;

/** @param sendBatch sends a batch, and returns for each message the reason for its refusal, or `undefined` if it was sent */
function sender<Sent>(
  sendBatch: (batch: readonly Sent[], signal: AbortSignal) => Promise<readonly (string | undefined)[]>,
  errorOf: (why: string, cause?: unknown) => SendError,
): Sender<Sent> {
  const unsentOf = async <Message extends Sent>(batch: readonly Message[], signal: AbortSignal) => {
    try {
      signal.throwIfAborted();
      const refusals = await sendBatch(batch, signal);
      return batch.flatMap((message, at) => {
        const why = refusals[at];
        return why === undefined ? [] : [{ message, error: errorOf(why) }];
      });
    } catch (cause) {
      const error = errorOf(signal.aborted ? 'ended at its deadline' : nameOfError(cause), cause);
      return batch.map((message) => ({ message, error }));
    }
  };
  return {
    send: async (messages, signal) =>
      (await eachOf(batchesOf(messages, BATCH_SIZE), CONCURRENT_CALLS, (batch) => unsentOf(batch, signal))).flat(),
  };
}

/** Returns an SQS queue. It is a standard queue, because a FIFO queue cannot delay a single message. */
export function sqsQueue(client: SQSClient, url: string): MessageQueue {
  const sendBatch = async (batch: readonly OutgoingMessage[], abortSignal: AbortSignal) => {
    const Entries = batch.map(({ body, delaySeconds }, index) => {
      return { Id: String(index), MessageBody: body, DelaySeconds: delaySeconds };
    });
    const { Failed = [] } = await client.send(new SendMessageBatchCommand({ QueueUrl: url, Entries }), { abortSignal });
    const refusals: string[] = [];
    for (const { Id, Code, Message } of Failed) refusals[Number(Id)] = `${Code}: ${Message}`;
    return refusals;
  };
  return sender(sendBatch, (why, cause) => queueError(url, why, cause));
}

const CODES: ReadonlyMap<string, SendErrorCode> = new Map([
  ['QueueDoesNotExist', 'QueueMissing'],
  ['AWS.SimpleQueueService.NonExistentQueue', 'QueueMissing'],
  ['AccessDenied', 'AccessDenied'],
  ['AccessDeniedException', 'AccessDenied'],
]);

const REMEDIES: Readonly<Record<SendErrorCode, string>> = {
  QueueMissing: 'deploy the stack that has it, or correct TICK_QUEUE_URL.',
  AccessDenied: 'allow sqs:SendMessage on this queue to the role of this function.',
  Unavailable: 'see the cause; functions in a private network need an endpoint for SQS or a NAT gateway.',
};

function queueError(url: string, why: string, cause: unknown): SendError {
  const code = CODES.get(nameOfError(cause)) ?? 'Unavailable';
  return new SendError(code, `sqs:SendMessage to ${url} failed (${why}): ${REMEDIES[code]}`, { cause });
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

/** Returns the client of a process. With `AWS_ENDPOINT_URL` (an emulator), it ignores the host of the queue's URL. */
export function createSqsClient(variables: Readonly<Record<string, string | undefined>>): SQSClient {
  const endpointIsSet = Boolean(variables['AWS_ENDPOINT_URL_SQS'] ?? variables['AWS_ENDPOINT_URL']);
  return new SQSClient({ ...(endpointIsSet && { useQueueUrlAsEndpoint: false }), ...clientOptions({}) });
}

export const EVENT_SOURCE = 'kube-bootstrap-controller';
export const EVENT_TYPE = 'Cluster State Change';

/** Returns the default event bus of this account and region. Its client is created with the first event. */
export function defaultEventBus(): EventBus {
  let client: EventBridgeClient | undefined;
  return sender<object>(async (details, abortSignal) => {
    const Entries = details.map((detail) => {
      return { Source: EVENT_SOURCE, DetailType: EVENT_TYPE, Detail: JSON.stringify(detail) };
    });
    client ??= new EventBridgeClient(clientOptions({}));
    const answer = await client.send(new PutEventsCommand({ Entries }), { abortSignal });
    return (answer.Entries ?? []).map(({ ErrorCode, ErrorMessage }) => ErrorCode && `${ErrorCode}: ${ErrorMessage}`);
  }, eventError);
}

function eventError(why: string, cause: unknown): SendError {
  const remedy = 'Functions in a private network need an endpoint for EventBridge (events) or a NAT gateway.';
  return new SendError('Unavailable', `events:PutEvents failed (${why}). ${remedy}`, { cause });
}
