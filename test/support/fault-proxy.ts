import type { PickIndex } from '../../lib/allocator/range-allocator.ts';
import { firstHalf, type Reaction, type SeenRequest, startFaultServer } from './api-fault-server.ts';

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The reaction of the proxy to one request. `forward` lets the server carry the request out. */
export type Fault = (forward: () => Promise<Reply>) => Promise<Reaction>;

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

const none: Fault = (forward) => forward();

/** The connection breaks before the server gets the request. */
export const dropRequest: Fault = async () => ({ reset: true });

/** The server carries the request out, and then the connection breaks. `meanwhile` runs before the client notices. */
export function dropReplyAfter(meanwhile: () => Promise<unknown>): Fault {
  return async (forward) => {
    await forward();
    await meanwhile();
    return { reset: true };
  };
}

export const dropReply = dropReplyAfter(async () => {});

/** The server carries the request out, and only half of its reply arrives. */
export const cutReply: Fault = async (forward) => {
  const { status, body } = await forward();
  return { status, cutOff: body };
};

/** The server carries the request out, and half of its reply arrives as if it was complete. */
export const truncateReply: Fault = async (forward) => {
  const reply = await forward();
  return { ...reply, body: firstHalf(reply.body) };
};

/** The server never gets the request, and no reply comes. */
export const hang: Fault = async () => ({ hang: true });

export function answer(status: number, body: string): Fault {
  return async () => ({ status, headers: { 'content-type': 'application/x-amz-json-1.0' }, body });
}

export function serviceError(status: number, type: string, message = ''): Fault {
  return answer(status, JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }));
}

export function throttle(times: number): Fault[] {
  const message = 'The level of configured provisioned throughput for the table was exceeded.';
  return Array(times).fill(serviceError(400, 'ProvisionedThroughputExceededException', message));
}

/** Returns a fault of a request to the table in soak runs. */
export function pickedFault(pick: PickIndex): Fault {
  const faults = [dropRequest, dropReply, cutReply, truncateReply, ...throttle(1)] as const;
  return faults[pick(faults.length)] ?? none;
}

/** Starts a proxy between a client and an HTTP server that breaks requests as planned. */
export async function startFaultProxy(target: string) {
  const plans = new Map<string, Fault[]>();
  /** The operation of each request so far, such as `PutItem`. Repeated attempts count separately. */
  const operations: string[] = [];
  const clock = { nowMs: Date.now };
  const { url, stop } = await startFaultServer(async ({ headers, body }) => {
    const operation = operationOf(headers);
    operations.push(operation);
    const fault = plans.get(operation)?.shift() ?? none;
    const reaction = await fault(() => forward(target, headers, body)).catch((): Reaction => ({ reset: true }));
    const date = new Date(clock.nowMs()).toUTCString();
    return 'headers' in reaction ? { ...reaction, headers: { ...reaction.headers, date } } : reaction;
  });
  /** Plans faults: the next requests of this operation get one fault each, in this order. */
  const plan = (operation: string, ...faults: readonly Fault[]) => {
    plans.set(operation, [...(plans.get(operation) ?? []), ...faults]);
  };
  return { endpoint: url, operations, clock, plan, close: stop };
}

async function forward(target: string, headers: SeenRequest['headers'], body: string): Promise<Reply> {
  const passed = ['content-type', 'x-amz-target', 'x-amz-date', 'authorization', 'x-amz-content-sha256'];
  const reply = await fetch(target, {
    method: 'POST',
    headers: Object.fromEntries(passed.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : []))),
    body,
  });
  const type = reply.headers.get('content-type') ?? '';
  return { status: reply.status, headers: { 'content-type': type }, body: Buffer.from(await reply.arrayBuffer()) };
}

/** Returns the operation in a header such as `X-Amz-Target: DynamoDB_20120810.PutItem`. */
function operationOf(headers: SeenRequest['headers']): string {
  return String(headers['x-amz-target']).split('.').at(-1) ?? '';
}
