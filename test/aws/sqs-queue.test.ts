import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { SQSClient } from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createSqsClient, sqsQueue } from '../../lib/aws/send-batches.ts';

interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
  readonly DelaySeconds: number;
}

interface Batch {
  readonly QueueUrl: string;
  readonly Entries: readonly Entry[];
}

type Answer = { readonly status: number; readonly body: object };

/** Where queues are in production, which is not where the test's server listens. */
const URL = 'https://sqs.eu-test-1.amazonaws.com/123456789012/ticks';
const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ body: `tick ${index}`, delaySeconds: index % 60 }));
const never = () => new AbortController().signal;
const taken = ({ Entries }: Batch): Answer => ({
  status: 200,
  body: { Successful: Entries.map(({ Id }) => ({ Id, MessageId: Id, MD5OfMessageBody: '' })) },
});

describe('a queue of SQS', () => {
  let server: http.Server;
  let client: SQSClient;
  let batches: Batch[] = [];
  let answer: (batch: Batch) => Answer | undefined = taken;

  beforeEach(async () => {
    batches = [];
    answer = taken;
    server = http.createServer((request, response) => {
      void json(request).then((sent) => {
        const batch = sent as Batch;
        batches.push(batch);
        const answered = answer(batch);
        if (answered === undefined) return;
        response.writeHead(answered.status, { 'content-type': 'application/x-amz-json-1.0' });
        response.end(JSON.stringify(answered.body));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    client = new SQSClient({
      endpoint: `http://127.0.0.1:${port}`,
      region: 'eu-test-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      useQueueUrlAsEndpoint: false,
      md5: false,
      maxAttempts: 1,
    });
  });

  afterEach(async () => {
    client.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a queue of SQS takes ten messages a call, each with its delay', async () => {
    expect(await sqsQueue(client, URL).send(messages(23), never())).toEqual([]);
    expect(batches.map(({ Entries }) => Entries.length).sort()).toEqual([10, 10, 3]);
    expect(batches.every(({ QueueUrl }) => QueueUrl === URL)).toBe(true);
    const sent = batches.flatMap(({ Entries }) => Entries);
    expect(sent.map(({ MessageBody, DelaySeconds }) => [MessageBody, DelaySeconds]).sort()).toEqual(
      messages(23)
        .map(({ body, delaySeconds }) => [body, delaySeconds])
        .sort(),
    );
  });

  test('a queue of SQS is not called without messages', async () => {
    expect(await sqsQueue(client, URL).send([], never())).toEqual([]);
    expect(batches).toEqual([]);
  });

  test('a queue of SQS returns the messages of a batch that were refused', async () => {
    answer = ({ Entries }) => ({
      status: 200,
      body: {
        Successful: [],
        Failed: Entries.slice(1).map(({ Id }) => ({
          Id,
          Code: 'InternalError',
          Message: 'try later',
          SenderFault: false,
        })),
      },
    });
    const unsent = await sqsQueue(client, URL).send(messages(3), never());
    expect(unsent.map(({ message }) => message.body)).toEqual(['tick 1', 'tick 2']);
    expect(unsent[0]?.error).toMatchObject({
      code: 'Unavailable',
      message: expect.stringContaining('InternalError: try later'),
    });
  });

  test.each([
    { type: 'com.amazonaws.sqs#QueueDoesNotExist', code: 'QueueMissing', remedy: 'TICK_QUEUE_URL' },
    { type: 'com.amazonaws.sqs#AccessDeniedException', code: 'AccessDenied', remedy: 'allow sqs:SendMessage' },
    { type: 'com.amazonaws.sqs#SomethingElse', code: 'Unavailable', remedy: 'private network' },
  ])('a queue that answers $type fails with $code and a resolution', async ({ type, code, remedy }) => {
    answer = () => ({ status: 400, body: { __type: type, message: 'no' } });
    const unsent = await sqsQueue(client, URL).send(messages(2), never());
    expect(unsent).toHaveLength(2);
    expect(unsent[0]?.error).toMatchObject({ code, message: expect.stringContaining(remedy) });
  });

  test('one batch that fails does not stop the others', async () => {
    answer = (batch) => (batches.length === 1 ? { status: 500, body: { __type: 'InternalFailure' } } : taken(batch));
    expect(await sqsQueue(client, URL).send(messages(40), never())).toHaveLength(10);
  });

  test('a queue that does not answer is abandoned at the end of the time', async () => {
    const controller = new AbortController();
    answer = () => {
      controller.abort(new Error('time is over'));
      return undefined;
    };
    const unsent = await sqsQueue(client, URL).send(messages(200), controller.signal);
    expect(unsent).toHaveLength(200);
    expect(unsent[0]?.error.message).toContain('was ended at its deadline');
  });
});

test.each([true, false])('the client uses the URL of the queue unless an endpoint is set: %s', (endpointIsSet) => {
  const client = createSqsClient({ endpointIsSet });
  expect(client.config.useQueueUrlAsEndpoint).toBe(!endpointIsSet);
  client.destroy();
});
