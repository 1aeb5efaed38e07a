import type { IncomingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { firstHalf, perform, type Reaction } from './api-fault-server.ts';
import { serve } from './serve.ts';

export type Fault =
  | { readonly kind: 'none' }
  /** The connection breaks before the server gets the request. */
  | { readonly kind: 'dropRequest' }
  /** The server carries the request out, and then the connection breaks. `meanwhile` runs before the client notices. */
  | { readonly kind: 'dropReply'; readonly meanwhile?: () => Promise<unknown> }
  /** The server carries the request out, and only half of its reply arrives. */
  | { readonly kind: 'cutReply' }
  /** The server carries the request out, and half of its reply arrives as if it was complete. */
  | { readonly kind: 'truncateReply' }
  /** The server never gets the request, and no reply comes. `meanwhile` runs when the request has arrived. */
  | { readonly kind: 'hang'; readonly meanwhile?: () => unknown }
  | { readonly kind: 'answer'; readonly status: number; readonly body: string };

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>;

/** Starts a proxy between a client and an HTTP server that breaks requests as planned. */
export async function startFaultProxy(target: string) {
  const plans = new Map<string, Fault[]>();
  /** The operation of each request so far, such as `PutItem`. Repeated attempts count separately. */
  const operations: string[] = [];
  const clock = { nowMs: Date.now };
  const { url, close } = await serve((request, response) => {
    response.setHeader('date', new Date(clock.nowMs()).toUTCString());
    const operation = operationOf(request.headers);
    operations.push(operation);
    const fault = plans.get(operation)?.shift() ?? { kind: 'none' };
    buffer(request)
      .then((body) => meet(fault, () => forward(target, request.headers, body)))
      .then((reaction) => perform(reaction, response))
      .catch(() => response.destroy());
  });
  /** Plans faults: the next requests of this operation get one fault each, in this order. */
  const plan = (operation: string, ...faults: Fault[]) => {
    plans.set(operation, [...(plans.get(operation) ?? []), ...faults]);
  };
  return { endpoint: url, operations, clock, plan, close };
}

/** The faults of requests to the table in soak runs. */
export const TABLE_FAULTS: readonly Fault[] = [
  { kind: 'dropRequest' },
  { kind: 'dropReply' },
  { kind: 'cutReply' },
  { kind: 'truncateReply' },
  ...throttle(1),
];

export function throttle(times: number): Fault[] {
  const message = 'The level of configured provisioned throughput for the table was exceeded.';
  return Array(times).fill(serviceError(400, 'ProvisionedThroughputExceededException', message));
}

export function serviceError(status: number, type: string, message = ''): Fault {
  return {
    kind: 'answer',
    status,
    body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }),
  };
}

interface Reply {
  readonly status: number;
  readonly headers: { readonly 'content-type': string };
  readonly body: Buffer;
}

async function meet(fault: Fault, ask: () => Promise<Reply>): Promise<Reaction> {
  switch (fault.kind) {
    case 'hang':
      fault.meanwhile?.();
      return { hang: true };
    case 'dropRequest':
      return { reset: true };
    case 'answer':
      return replyOf(fault.status, 'application/x-amz-json-1.0', Buffer.from(fault.body));
    case 'dropReply':
      await ask();
      await fault.meanwhile?.();
      return { reset: true };
    case 'cutReply': {
      const { status, body } = await ask();
      return { status, cutOff: body };
    }
    case 'truncateReply': {
      const reply = await ask();
      return { ...reply, body: firstHalf(reply.body) };
    }
    case 'none':
      return ask();
  }
}

function replyOf(status: number, type: string, body: Buffer): Reply {
  return { status, headers: { 'content-type': type }, body };
}

async function forward(target: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Reply> {
  const passed = ['content-type', 'x-amz-target', 'x-amz-date', 'authorization', 'x-amz-content-sha256'];
  const reply = await fetch(target, {
    method: 'POST',
    headers: Object.fromEntries(passed.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : []))),
    body: new Uint8Array(body),
  });
  return replyOf(reply.status, reply.headers.get('content-type') ?? '', Buffer.from(await reply.arrayBuffer()));
}

/** Returns the operation in a header such as `X-Amz-Target: DynamoDB_20120810.PutItem`. */
function operationOf(headers: IncomingHttpHeaders): string {
  return String(headers['x-amz-target']).split('.').at(-1) ?? '';
}
