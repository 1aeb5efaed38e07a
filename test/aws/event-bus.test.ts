import { afterEach, describe, expect, test } from '@jest/globals';
import { defaultEventBus } from '../../lib/aws/send-batches.ts';
import { type AwsAnswer, awsError, type FakeAws, startFakeAws } from '../support/fake-aws.ts';

const DETAILS = Array.from({ length: 12 }, (_, at) => ({ cluster: `c-${at}` }));

interface Entry {
  readonly Source: string;
  readonly DetailType: string;
  readonly Detail: string;
}

describe('the default event bus', () => {
  let aws: FakeAws | undefined;
  const entries = () => aws?.calls.map(({ body }) => body['Entries'] as readonly Entry[]) ?? [];
  const publish = async (react: (batch: number) => AwsAnswer, signal = new AbortController().signal) => {
    let batch = 0;
    aws = await startFakeAws(() => react(batch++));
    return defaultEventBus().publish(DETAILS, signal);
  };

  afterEach(() => aws?.stop());

  test('the default event bus gets at most ten events in a call, with one source and type', async () => {
    const published = await publish(() => ({ body: { FailedEntryCount: 0, Entries: [] } }));
    expect(published).toEqual({ unpublished: 0, errors: [] });
    expect(aws?.calls.map(({ action }) => action)).toEqual(['AWSEvents.PutEvents', 'AWSEvents.PutEvents']);
    expect(entries().flatMap((batch) => batch.map(({ Detail }) => JSON.parse(Detail)))).toEqual(DETAILS);
    const [first] = entries().flat();
    expect(first).toMatchObject({ Source: 'kube-bootstrap-controller', DetailType: 'Cluster State Change' });
  });

  test('the default event bus counts the events that EventBridge refuses, and still makes the other calls', async () => {
    const refused = {
      body: { FailedEntryCount: 1, Entries: [{ EventId: '1' }, { ErrorCode: 'ThrottlingException' }] },
    };
    const published = await publish((batch) => (batch === 0 ? awsError('AccessDeniedException') : refused));
    expect(published.unpublished).toBe(11);
    expect(published.errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('AccessDeniedException'),
      expect.stringContaining('ThrottlingException'),
    ]);
    expect(published.errors[0]?.message).toContain('endpoint for EventBridge');
  });

  test('the default event bus is not called when time is over', async () => {
    const published = await publish(() => ({ hang: true }), AbortSignal.abort());
    expect(published.unpublished).toBe(12);
    expect(aws?.calls).toEqual([]);
  });
});
