import { describe, expect, test } from '@jest/globals';
import { createSqsClient, defaultEventBus, sqsQueue } from '../../lib/aws/send-batches.ts';
import { type AwsAnswer, type AwsCall, awsError, type FakeAws, fakeAws } from '../support/fake-aws.ts';

/** The URL of a queue in the format of production. The server of the test has another address. */
const URL = 'https://sqs.eu-test-1.amazonaws.com/123456789012/ticks';
const MESSAGES = Array.from({ length: 12 }, (_, at) => ({ body: `tick ${at}`, delaySeconds: at % 60 }));
const OK = { body: {} };

type Entry = Readonly<Record<'MessageBody' | 'Source' | 'DetailType' | 'Detail', string>> & {
  readonly DelaySeconds: number;
};

const entriesOf = ({ body }: AwsCall) => body['Entries'] as readonly Entry[];
const queue = () => sqsQueue(createSqsClient(process.env), URL);

let aws: FakeAws | undefined;
/** Returns the calls with the largest batches first, because calls arrive in any order. */
const calls = () => [...(aws?.calls ?? [])].sort((one, other) => entriesOf(other).length - entriesOf(one).length);

type Open = typeof queue | typeof defaultEventBus;

async function send(open: Open, react: (call: AwsCall) => AwsAnswer, { signal } = new AbortController()) {
  aws = await fakeAws(react);
  return open().send(MESSAGES, signal);
}

test('a queue of SQS gets at most ten messages in a call, each with its delay', async () => {
  expect(await send(queue, () => OK)).toEqual([]);
  expect(calls().map((call) => [call.action, call.body['QueueUrl'], entriesOf(call).length])).toEqual([
    ['AmazonSQS.SendMessageBatch', URL, 10],
    ['AmazonSQS.SendMessageBatch', URL, 2],
  ]);
  const sent = calls()
    .flatMap(entriesOf)
    .map(({ MessageBody: body, DelaySeconds: delaySeconds }) => ({ body, delaySeconds }));
  expect(sent).toEqual(MESSAGES);
});

test('the default event bus gets at most ten events in a call, and all events have the same source and type', async () => {
  expect(await send(defaultEventBus, () => OK)).toEqual([]);
  const sizes = calls().map((call) => `${call.action} ${entriesOf(call).length}`);
  expect(sizes).toEqual(['AWSEvents.PutEvents 10', 'AWSEvents.PutEvents 2']);
  const sent = calls().flatMap(entriesOf);
  expect(sent.map(({ Detail }) => JSON.parse(Detail))).toEqual(MESSAGES);
  expect(sent[0]).toMatchObject({ Source: 'kube-bootstrap-controller', DetailType: 'Cluster State Change' });
});

const REFUSED = { ErrorCode: 'InternalError', ErrorMessage: 'try later' };

describe.each([
  ['a queue of SQS', queue, { Failed: [{ Id: '1', Code: 'InternalError', Message: 'try later', SenderFault: false }] }],
  ['the default event bus', defaultEventBus, { FailedEntryCount: 1, Entries: [{ EventId: '1' }, REFUSED] }],
])('%s', (sender, open, refusal) => {
  test(`if ${sender} refuses a call or a message, the other messages are still sent, and the refused messages are returned`, async () => {
    const unsent = await send(open, (call) =>
      entriesOf(call).length === 2 ? { body: refusal } : awsError('AccessDeniedException'),
    );
    expect(unsent.map(({ message }) => message)).toEqual([...MESSAGES.slice(0, 10), MESSAGES[11]]);
    expect(unsent[0]?.error.message).toContain('failed (AccessDeniedException)');
    const message = expect.stringMatching(/failed \(InternalError: try later\).*private network/);
    expect(unsent.at(-1)?.error).toMatchObject({ code: 'Unavailable', message });
  });

  test(`a send to ${sender} ends at its deadline, and returns the messages that were not sent`, async () => {
    const controller = new AbortController();
    const hang = () => {
      controller.abort(new Error('time is over'));
      return { hang: true } as const;
    };
    const unsent = await send(open, hang, controller);
    expect(unsent).toHaveLength(12);
    expect(unsent[0]?.error.message).toContain('failed (ended at its deadline)');
    const before = calls().length;
    expect(await open().send(MESSAGES, controller.signal)).toHaveLength(12);
    expect(calls()).toHaveLength(before);
  });
});

test.each([
  { type: 'com.amazonaws.sqs#QueueDoesNotExist', code: 'QueueMissing', remedy: 'TICK_QUEUE_URL' },
  { type: 'com.amazonaws.sqs#AccessDeniedException', code: 'AccessDenied', remedy: 'allow sqs:SendMessage' },
])('if SQS answers $type, the error has the code $code and a resolution', async ({ type, code, remedy }) => {
  const [unsent] = await send(queue, () => awsError(type));
  expect(unsent?.error).toMatchObject({ code, message: expect.stringContaining(remedy) });
});

test('a client of SQS uses the URL of the queue unless an endpoint is set', () => {
  const isOwnUrl = (variables: Record<string, string>) => createSqsClient(variables).config.useQueueUrlAsEndpoint;
  expect([isOwnUrl({}), isOwnUrl({ AWS_ENDPOINT_URL: 'http://127.0.0.1:1' })]).toEqual([true, false]);
});
