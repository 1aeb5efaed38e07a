import { type MessageQueue, type OutgoingMessage, SendError, type Sender } from '../../lib/aws/send-batches.ts';

/** Returns a queue in this process, whose messages wait by the clock of the test. */
export function memoryQueue(nowMs: () => number) {
  const sent: OutgoingMessage[] = [];
  let waiting: { readonly body: string; readonly atMs: number }[] = [];
  const queue: MessageQueue = {
    send: async (messages) => {
      sent.push(...messages);
      waiting.push(...messages.map(({ body, delaySeconds }) => ({ body, atMs: nowMs() + delaySeconds * 1000 })));
      return [];
    },
  };
  return {
    sent,
    queue,
    /** Returns an event, as a function receives it, for each message whose delay has ended. */
    receive: () => {
      const due = waiting.filter(({ atMs }) => atMs <= nowMs());
      waiting = waiting.filter(({ atMs }) => atMs > nowMs());
      return due.map(({ body }) => queueEvent(body));
    },
  };
}

/** Returns the event that SQS sends to a function. @param receives how often each message was received */
export function queueEvent(bodies: string | readonly string[], receives = 1): object {
  const attributes = { ApproximateReceiveCount: String(receives) };
  return {
    Records: [bodies].flat().map((body, at) => ({ messageId: String(at), eventSource: 'aws:sqs', body, attributes })),
  };
}

export const downQueue: Sender<object> = {
  send: async (messages) => {
    const error = new SendError('Unavailable', 'the queue is down');
    return messages.map((message) => ({ message, error }));
  },
};
