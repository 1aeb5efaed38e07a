import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { batchesOf } from '../cluster/async.ts';
import { CodedError } from '../cluster/values.ts';
import { storeClientOptions } from './store-client.ts';

/** Publishes changes of clusters. An event may be received twice. */
export interface EventBus {
  /** Publishes as many events as possible until the signal aborts. Never throws. */
  publish(details: readonly object[], signal: AbortSignal): Promise<Published>;
}

export interface Published {
  readonly unpublished: number;
  readonly errors: readonly Error[];
}

export const EVENT_SOURCE = 'kube-bootstrap-controller';
export const EVENT_TYPE = 'Cluster State Change';

/** EventBridge's limit for one call. */
const BATCH_SIZE = 10;

class EventBusError extends CodedError<'Unavailable'> {
  override readonly name = 'EventBusError';
}

/** Returns the default event bus of this account and region. Its client is created with the first event. */
export function defaultEventBus(): EventBus {
  let client: EventBridgeClient | undefined;
  return {
    publish: async (details, abortSignal) => {
      client ??= new EventBridgeClient(storeClientOptions({}));
      const errors: Error[] = [];
      let unpublished = 0;
      for (const batch of batchesOf(details, BATCH_SIZE)) {
        const Entries = batch.map((detail) => {
          return { Source: EVENT_SOURCE, DetailType: EVENT_TYPE, Detail: JSON.stringify(detail) };
        });
        try {
          const answer = await client.send(new PutEventsCommand({ Entries }), { abortSignal });
          const refused = (answer.Entries ?? []).filter(({ ErrorCode }) => ErrorCode !== undefined);
          unpublished += refused.length;
          errors.push(...refused.map(({ ErrorCode, ErrorMessage }) => failed(`${ErrorCode}: ${ErrorMessage}`)));
        } catch (error) {
          unpublished += batch.length;
          errors.push(failed(error instanceof Error ? error.name : 'unknown error', error));
        }
      }
      return { unpublished, errors };
    },
  };
}

function failed(why: string, cause?: unknown): EventBusError {
  const remedy = 'Functions in a private network need an endpoint for EventBridge (events) or a NAT gateway.';
  return new EventBusError('Unavailable', `events:PutEvents failed (${why}). ${remedy}`, { cause });
}
