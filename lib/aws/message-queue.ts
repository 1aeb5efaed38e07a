export interface OutgoingMessage {
  readonly body: string;
  /** Whole seconds until anybody receives it. */
  readonly delaySeconds: number;
}

/** A message that is not known to be in the queue; it may be all the same. */
export interface Unsent<Message> {
  readonly message: Message;
  readonly error: QueueError;
}

/** Where ticks wait until they are due. Whoever receives one may receive it twice. */
export interface MessageQueue {
  /** Sends what it can until the signal aborts. Never throws. @returns what was not sent. */
  send<Message extends OutgoingMessage>(
    messages: readonly Message[],
    signal: AbortSignal,
  ): Promise<readonly Unsent<Message>[]>;
}

export type QueueErrorCode = 'QueueMissing' | 'AccessDenied' | 'Unavailable';

/** Why a message was not sent. The message says what failed and what to do. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
  readonly code: QueueErrorCode;

  constructor(code: QueueErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
