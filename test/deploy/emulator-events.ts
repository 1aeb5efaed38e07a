import { ACCOUNT, type Aws, REGION } from '../support/emulator-aws.ts';
import { eventually } from '../support/eventually.ts';
import { found } from '../support/found.ts';
import { queueEvent } from '../support/memory-queue.ts';
import type { DeployedFunction, Functions } from './emulator-stack.ts';

interface Rule {
  readonly Name: string;
  readonly Arn: string;
  readonly State: string;
  readonly ScheduleExpression?: string;
}

/** Returns the events of the enabled schedules of a stack, by the name of the function in `serverless.yml`. */
export async function readSchedules(aws: Aws, functions: Functions) {
  const schedules: Record<string, () => object> = {};
  const { Rules: rules } = await aws.json<{ Rules: Rule[] }>('events', 'AWSEvents.ListRules', {});
  for (const { Name, Arn, State, ScheduleExpression: expression } of rules) {
    if (expression === undefined || State !== 'ENABLED') continue;
    const list = 'AWSEvents.ListTargetsByRule';
    const { Targets: targets } = await aws.json<{ Targets: { Arn: string }[] }>('events', list, { Rule: Name });
    for (const [name, { arn }] of Object.entries(functions)) {
      if (targets.some((target) => target.Arn === arn)) schedules[name] = () => scheduledEvent(Arn);
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
}

interface Message {
  readonly ReceiptHandle: string;
  readonly Body: string;
}

/** Returns the queue that the deployed event source mapping of a function names. */
export async function readQueue(aws: Aws, { arn, invoke }: DeployedFunction) {
  const { EventSourceMappings: mappings }: { EventSourceMappings: EventSourceMapping[] } = JSON.parse(
    (await aws.get('lambda', '/2015-03-31/event-source-mappings/')).toString(),
  );
  const { EventSourceArn } = found(mappings.find(({ FunctionArn }) => FunctionArn === arn));
  const QueueUrl = `${aws.endpoint}/${ACCOUNT}/${EventSourceArn.split(':').at(-1)}`;
  const call = <Answer>(operation: string, fields: object = {}) =>
    aws.json<Answer>('sqs', `AmazonSQS.${operation}`, { QueueUrl, ...fields });
  return {
    purge: () => call('PurgeQueue'),
    /** Counts the messages, including delayed ones. */
    async waiting() {
      const { Attributes } = await call<{ Attributes: Record<string, string> }>('GetQueueAttributes', {
        AttributeNames: ['All'],
      });
      const { ApproximateNumberOfMessages: visible, ApproximateNumberOfMessagesDelayed: delayed } = Attributes;
      return Number(visible) + Number(delayed);
    },
    /** Waits for a message, invokes the function with it as Lambda does, and deletes it if the invocation succeeds. */
    async deliver() {
      const { Body: body, ReceiptHandle } = await eventually(async () => {
        const { Messages: [message] = [] } = await call<{ Messages?: Message[] }>('ReceiveMessage');
        return found(message);
      });
      const invocation = await invoke(queueEvent(body));
      if (invocation.error === undefined) await call('DeleteMessage', { ReceiptHandle });
      return { body, ...invocation };
    },
  };
}
