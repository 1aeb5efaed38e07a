import { setTimeout as sleep } from 'node:timers/promises';
import { ACCOUNT, type Aws, REGION } from '../support/emulator-aws.ts';
import type { Invocation } from './emulator-function.ts';
import type { DeployedFunction, Functions } from './emulator-stack.ts';

interface Rule {
  readonly Name: string;
  readonly Arn: string;
  readonly State: string;
  readonly ScheduleExpression?: string;
}

/**
 * Returns the enabled schedules of a stack by the name of the function in `serverless.yml`. A schedule invokes its function once
 * with the event that EventBridge sends.
 */
export async function readSchedules(aws: Aws, functions: Functions) {
  const schedules: Record<string, () => Promise<Invocation>> = {};
  const { Rules: rules } = await aws.json<{ Rules: Rule[] }>('events', 'AWSEvents.ListRules', {});
  for (const { Name, Arn, State, ScheduleExpression: expression } of rules) {
    if (expression === undefined || State !== 'ENABLED') continue;
    const { Targets: targets } = await aws.json<{ Targets: { Arn: string; Input?: string }[] }>(
      'events',
      'AWSEvents.ListTargetsByRule',
      { Rule: Name },
    );
    for (const { Arn: arn, Input: input } of targets) {
      const [name, target] = Object.entries(functions).find(([, one]) => one.arn === arn) ?? [];
      if (name === undefined || target === undefined) continue;
      schedules[name] = () => target.invoke(input === undefined ? scheduledEvent(Arn) : JSON.parse(input));
    }
  }
  return schedules;
}

/** See https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-run-lambda-schedule.html */
function scheduledEvent(ruleArn: string): object {
  return {
    version: '0',
    id: '53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa',
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: ACCOUNT,
    time: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    region: REGION,
    resources: [ruleArn],
    detail: {},
  };
}

interface EventSourceMapping {
  readonly EventSourceArn: string;
  readonly FunctionArn: string;
  readonly BatchSize: number;
}

interface Message {
  readonly MessageId: string;
  readonly ReceiptHandle: string;
  readonly Body: string;
  readonly Attributes?: Readonly<Record<string, string>>;
}

/** One delivery of a message, and its invocation. */
interface Delivery {
  readonly body: string;
  readonly invocation: Invocation;
}

/** Delivers the messages of each queue to its function, as an event source of Lambda does. */
export async function startEventSources(aws: Aws, functions: Functions) {
  const { EventSourceMappings: mappings }: { EventSourceMappings: EventSourceMapping[] } = JSON.parse(
    (await aws.get('lambda', '/2015-03-31/event-source-mappings/')).toString(),
  );
  const deliveries: Delivery[] = [];
  const ended = new AbortController();
  const queues = new Map<string, string>();
  const turns = new Set<Promise<void>>();
  const pollers = mappings.flatMap((mapping) => {
    const found = Object.entries(functions).find(([, { arn }]) => arn === mapping.FunctionArn);
    if (found === undefined) return [];
    queues.set(found[0], queueUrl(aws, mapping.EventSourceArn));
    return [poll({ aws, mapping, target: found[1], deliveries, turns, signal: ended.signal })];
  });
  const urlOf = (name: string) => {
    const url = queues.get(name);
    if (url === undefined) throw new Error(`no queue is mapped to ${name}`);
    return url;
  };
  return {
    /** All deliveries in the order in which they ended. */
    deliveries: deliveries as readonly Delivery[],
    /** Counts the messages in the queue of a function, including delayed ones. */
    async waiting(name: string) {
      const { Attributes } = await aws.json<{ Attributes: Record<string, string> }>(
        'sqs',
        'AmazonSQS.GetQueueAttributes',
        { QueueUrl: urlOf(name), AttributeNames: ['All'] },
      );
      return (
        Number(Attributes['ApproximateNumberOfMessages']) + Number(Attributes['ApproximateNumberOfMessagesDelayed'])
      );
    },
    /** Removes the messages of the queue, and waits until all deliveries have ended. */
    async purge(name: string) {
      await aws.json('sqs', 'AmazonSQS.PurgeQueue', { QueueUrl: urlOf(name) });
      // Messages that were already received are still delivered.
      await Promise.all(turns);
    },
    /** Stops all event sources, and waits until all deliveries have ended. */
    async stop() {
      ended.abort();
      await Promise.all(pollers);
      await Promise.all(turns);
    },
  };
}

interface Poller {
  readonly aws: Aws;
  readonly mapping: EventSourceMapping;
  readonly target: DeployedFunction;
  readonly deliveries: Delivery[];
  /** The running turns of all queues. A turn lasts from the request for messages to the end of their delivery. */
  readonly turns: Set<Promise<void>>;
  readonly signal: AbortSignal;
}

const POLL_MS = 250;

async function poll(poller: Poller): Promise<void> {
  const { turns, signal } = poller;
  while (!signal.aborted) {
    await sleep(POLL_MS);
    // Requests run one after the other, because the emulator returns a message to both of two simultaneous requests.
    const received = receive(poller);
    const turn = received
      .then((messages) => (messages.length > 0 ? deliver(poller, messages) : undefined))
      .finally(() => turns.delete(turn));
    turns.add(turn);
    await received.catch(() => undefined);
  }
}

async function receive({ aws, mapping }: Poller): Promise<readonly Message[]> {
  const { Messages: messages = [] } = await aws.json<{ Messages?: Message[] }>('sqs', 'AmazonSQS.ReceiveMessage', {
    QueueUrl: queueUrl(aws, mapping.EventSourceArn),
    MaxNumberOfMessages: mapping.BatchSize,
    AttributeNames: ['All'],
  });
  return messages;
}

/** Delivers messages, and deletes them after a success. After a failure, they are visible again at the end of their timeout. */
async function deliver({ aws, mapping, target, deliveries }: Poller, messages: readonly Message[]): Promise<void> {
  const { EventSourceArn: arn } = mapping;
  const invocation = await target.invoke({ Records: messages.map((message) => record(counted(message), arn)) });
  for (const { Body: body, ReceiptHandle } of messages) {
    deliveries.push({ body, invocation });
    if (invocation.error === undefined) {
      // SQS accepts the deletion of a message that was purged meanwhile. The emulator does not.
      await aws
        .json('sqs', 'AmazonSQS.DeleteMessage', { QueueUrl: queueUrl(aws, arn), ReceiptHandle })
        .catch((error: unknown) => {
          if (!String(error).includes('ReceiptHandleIsInvalid')) throw error;
        });
    }
  }
}

const receives = new Map<string, number>();

/** Returns the message with the number of its receives by this event source. The emulator's number includes its own receives. */
function counted(message: Message): Message {
  const count = (receives.get(message.MessageId) ?? 0) + 1;
  receives.set(message.MessageId, count);
  return { ...message, Attributes: { ...message.Attributes, ApproximateReceiveCount: String(count) } };
}

/** See https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
function record({ MessageId, ReceiptHandle, Body, Attributes }: Message, arn: string): object {
  return {
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: Attributes,
    messageAttributes: {},
    eventSource: 'aws:sqs',
    eventSourceARN: arn,
    awsRegion: REGION,
  };
}

function queueUrl({ endpoint }: Aws, arn: string): string {
  return `${endpoint}/${ACCOUNT}/${arn.split(':').at(-1) ?? ''}`;
}
