import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  DynamoDBServiceException,
} from '@aws-sdk/client-dynamodb';
import type { Call, CallOptions, Exchanged, Process } from './process.ts';

export type Attributes = Record<string, AttributeValue>;
/** The items of the table, by cluster and key, in the form that DynamoDB has. */
export type Store = Map<string, Map<string, Attributes>>;

export interface TableWrite extends Call {
  readonly cluster: string;
  readonly key: string;
  readonly before: Attributes | undefined;
  readonly after: Attributes | undefined;
}

interface Input {
  readonly Key?: Attributes;
  readonly RequestItems?: { readonly t: { readonly Keys: readonly Attributes[] } };
  readonly Item?: Attributes;
  readonly ExpressionAttributeValues?: Attributes;
  readonly ExclusiveStartKey?: Attributes;
}

/** The attempts of a call, as many as the SDK makes. */
const ATTEMPTS = 3;
const PAGE = 4;
/** Fields that the previous version does not know. */
const NEWER_FIELDS: ReadonlySet<string> = new Set(['given', 'withoutAnswer']);

type Middleware = (next: () => Promise<unknown>) => () => Promise<unknown>;

/** A DynamoDB table in memory, as its client sees it. `lib/table/dynamodb/dynamodb-table.ts` runs on it unchanged. */
export abstract class StandInTable {
  store: Store = new Map();
  readonly #nowMs: () => number;
  #second = 0;
  #headers = {};

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  protected abstract hasRead(cluster: string, key: string, by: Process): void;

  protected abstract hasWritten(write: TableWrite): void;

  /** Returns the client of one process. Each reply has the date of the table. */
  client(by: Process): DynamoDBClient {
    const middlewares: Middleware[] = [];
    const send = async (command: object, { abortSignal }: { abortSignal?: AbortSignal } = {}) => {
      const [name] = command.constructor.name.split('Command');
      const { input } = command as { readonly input: Input };
      const call = by.call();
      for (let attempt = 1; ; attempt++) {
        const options = { signal: abortSignal, isRepeated: attempt > 1, writes: input.Item?.['key']?.S };
        const keys = input.RequestItems?.t.Keys;
        const answer =
          keys === undefined
            ? await by.exchange(() => this.#apply(name ?? '', input, call), options)
            : await this.#batch(keys, call, options);
        if (answer.outcome !== 'noReply') await this.#date(middlewares);
        if (answer.outcome === 'reply') return replyOf(answer.reply, attempt);
        if (attempt === ATTEMPTS) throw failureOf(answer, attempt);
      }
    };
    const client = {
      send,
      config: { region: async () => 'eu-central-1' },
      middlewareStack: { add: (middleware: Middleware) => middlewares.push(middleware) },
    };
    return client as unknown as DynamoDBClient;
  }

  find(cluster: string, key: string): Attributes | undefined {
    return this.store.get(cluster)?.get(key);
  }

  /** Removes items whose time to live has ended. */
  sweep(): void {
    const isOver = ({ ttl }: Attributes) => Number(ttl?.N ?? Number.POSITIVE_INFINITY) * 1000 < this.#nowMs();
    for (const items of this.store.values()) for (const [key, item] of items) if (isOver(item)) items.delete(key);
  }

  /** Converts the ranges to the form of the previous version, which had no holds and no requests. */
  storeAsBefore(): void {
    for (const items of this.store.values()) {
      for (const [key, { value, ...rest }] of items) {
        if (key.startsWith('requests/')) items.delete(key);
        if (!key.startsWith('ranges/')) continue;
        const { holds: _, given: __, ...before } = value?.M ?? {};
        items.set(key, { ...rest, value: { M: before }, schema: { N: '1' } });
      }
    }
  }

  async #date(middlewares: readonly Middleware[]): Promise<void> {
    const second = Math.floor(this.#nowMs() / 1000);
    if (second !== this.#second) this.#headers = { date: new Date(second * 1000).toUTCString() };
    this.#second = second;
    const result = Promise.resolve({ response: { headers: this.#headers } });
    for (const middleware of middlewares) await middleware(() => result)();
  }

  /** Reads the items of a batch at two moments, each some of them. If the later read fails, its items are left out. */
  async #batch(keys: readonly Attributes[], call: Call, options: CallOptions): Promise<Exchanged<object>> {
    const { early = [], late = [] } = Object.groupBy(keys, () => (call.by.pick(2) === 0 ? 'early' : 'late'));
    const read = (part: readonly Attributes[]) =>
      call.by.exchange(
        () => part.map((Key) => this.#apply('GetItem', { Key }, call) as { Item?: Attributes }),
        options,
      );
    const [first, second] = [await read(early), await read(late)];
    if (first.outcome !== 'reply') return first;
    const rest = second.outcome === 'reply' ? second.reply : [];
    const items = [...first.reply, ...rest].flatMap(({ Item }) => (Item === undefined ? [] : [Item]));
    const unread = second.outcome === 'reply' ? {} : { t: { Keys: late } };
    return { outcome: 'reply', reply: { Responses: { t: items }, UnprocessedKeys: unread } };
  }

  #apply(name: string, input: Input, call: Call): object {
    const { cluster, key } = input.Item ?? input.Key ?? {};
    switch (name) {
      case 'GetItem':
        this.hasRead(cluster?.S ?? '', key?.S ?? '', call.by);
        return { Item: seenBy(call.by, this.find(cluster?.S ?? '', key?.S ?? '')) };
      case 'Query':
        return this.#query(input);
      default:
        return this.#write(cluster?.S ?? '', key?.S ?? '', input, call);
    }
  }

  #query({ ExpressionAttributeValues: values = {}, ExclusiveStartKey: start }: Input): object {
    const prefix = values[':prefix']?.S ?? '';
    const items = [...(this.store.get(values[':cluster']?.S ?? '') ?? [])]
      .filter(([key]) => key.startsWith(prefix) && key > (start?.['key']?.S ?? ''))
      .sort(([one], [other]) => (one < other ? -1 : 1));
    const page = items.slice(0, PAGE).map(([, item]) => item);
    const last = page.at(-1);
    return { Items: page, ...(items.length > PAGE && { LastEvaluatedKey: { key: last?.['key'] } }) };
  }

  #write(cluster: string, key: string, { Item: after, ExpressionAttributeValues: values }: Input, call: Call): object {
    const before = this.find(cluster, key);
    if (before?.['writeId']?.S !== values?.[':previous']?.S) return { refusedFor: seenBy(call.by, before) };
    const items = this.store.get(cluster) ?? new Map<string, Attributes>();
    this.store.set(cluster, items);
    if (after === undefined) items.delete(key);
    else items.set(key, seenBy(call.by, after) ?? after);
    this.hasWritten({ cluster, key, before, after, ...call });
    return {};
  }
}

/** Returns an item as the version of the process reads and writes it, without the fields that this version does not know. */
function seenBy({ isOlder }: Process, item: Attributes | undefined): Attributes | undefined {
  if (!isOlder || item === undefined) return item;
  const known = Object.entries(item['value']?.M ?? {}).filter(([field]) => !NEWER_FIELDS.has(field));
  return { ...item, value: { M: Object.fromEntries(known) } };
}

function replyOf(reply: object, attempts: number): object {
  if ('refusedFor' in reply) throw refusal(reply.refusedFor as Attributes | undefined, attempts);
  return reply;
}

function failureOf(answer: Exclude<Exchanged<object>, { outcome: 'reply' }>, attempts: number): Error {
  if (answer.outcome === 'refused' && answer.by === 'throttled') return exception('ThrottlingException', attempts);
  const httpStatusCode = answer.outcome === 'refused' ? 500 : undefined;
  return Object.assign(new Error('no answer'), { name: 'TimeoutError', $metadata: { attempts, httpStatusCode } });
}

function refusal(Item: Attributes | undefined, attempts: number): Error {
  const $metadata = { httpStatusCode: 400, attempts };
  return new ConditionalCheckFailedException({ message: 'refused', ...(Item && { Item }), $metadata });
}

function exception(name: string, attempts: number): Error {
  const $metadata = { httpStatusCode: 400, attempts };
  return new DynamoDBServiceException({ name, $fault: 'client', message: name, $metadata });
}
