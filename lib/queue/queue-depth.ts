import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';

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
