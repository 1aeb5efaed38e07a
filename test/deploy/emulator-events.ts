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
 * The enabled schedules of a stack's functions, by the name of the function in `serverless.yml`: each invokes it once with what
 * EventBridge sends.
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

/** https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-run-lambda-schedule.html */
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
  readonly ScalingConfig?: { readonly MaximumConcurrency: number };
}

interface Message {
  readonly MessageId: string;
  readonly ReceiptHandle: string;
  readonly Body: string;
  readonly Attributes?: Readonly<Record<string, string>>;
}

/** What one message led to. */
interface Delivery {
  readonly body: string;
  readonly invocation: Invocation;
}

/** Feeds every queue that is mapped to a function of the stack to it, as Lambda's event source does. */
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
    /** In order of their ends. */
    deliveries: deliveries as readonly Delivery[],
    /** Counts the messages in the queue of a function, delayed ones too. */
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
    /** Takes away what waits, and waits for what is under way. */
    async purge(name: string) {
      await aws.json('sqs', 'AmazonSQS.PurgeQueue', { QueueUrl: urlOf(name) });
      // A message that was received before is still to be delivered.
      await Promise.all(turns);
    },
    /** Waits for what is under way. */
    async stop() {
      ended.abort();
      await Promise.all(pollers);
    },
  };
}

interface Poller {
  readonly aws: Aws;
  readonly mapping: EventSourceMapping;
  readonly target: DeployedFunction;
  readonly deliveries: Delivery[];
  /** What is under way for any queue: from asking for messages to the end of what they led to. */
  readonly turns: Set<Promise<void>>;
  readonly signal: AbortSignal;
}

const POLL_MS = 250;

async function poll(poller: Poller): Promise<void> {
  const { mapping, turns, signal } = poller;
  const atOnce = mapping.ScalingConfig?.MaximumConcurrency ?? 1000;
  const own = new Set<Promise<void>>();
  while (!signal.aborted) {
    await sleep(POLL_MS);
    if (own.size >= atOnce) continue;
    // The emulator gives a message to each of two requests that meet, as if its first process had ended.
    const received = receive(poller);
    const turn = received
      .then((messages) => (messages.length > 0 ? deliver(poller, messages) : undefined))
      .finally(() => {
        own.delete(turn);
        turns.delete(turn);
      });
    own.add(turn);
    turns.add(turn);
    await received.catch(() => undefined);
  }
  await Promise.all(own);
}

async function receive({ aws, mapping }: Poller): Promise<readonly Message[]> {
  const { Messages: messages = [] } = await aws.json<{ Messages?: Message[] }>('sqs', 'AmazonSQS.ReceiveMessage', {
    QueueUrl: queueUrl(aws, mapping.EventSourceArn),
    MaxNumberOfMessages: mapping.BatchSize,
    AttributeNames: ['All'],
  });
  return messages;
}

/** What the handler took is deleted; what it failed to take comes again when its visibility timeout is over. */
async function deliver({ aws, mapping, target, deliveries }: Poller, messages: readonly Message[]): Promise<void> {
  const { EventSourceArn: arn } = mapping;
  const invocation = await target.invoke({ Records: messages.map((message) => record(counted(message), arn)) });
  for (const { Body: body, ReceiptHandle } of messages) {
    deliveries.push({ body, invocation });
    if (invocation.error === undefined) {
      // SQS accepts this of a message that was purged meanwhile, and the emulator does not.
      await aws
        .json('sqs', 'AmazonSQS.DeleteMessage', { QueueUrl: queueUrl(aws, arn), ReceiptHandle })
        .catch((error: unknown) => {
          if (!String(error).includes('ReceiptHandleIsInvalid')) throw error;
        });
    }
  }
}

const receives = new Map<string, number>();

/** With the receives of this event source: the emulator counts some of its own, too. */
function counted(message: Message): Message {
  const count = (receives.get(message.MessageId) ?? 0) + 1;
  receives.set(message.MessageId, count);
  return { ...message, Attributes: { ...message.Attributes, ApproximateReceiveCount: String(count) } };
}

/** https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
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
