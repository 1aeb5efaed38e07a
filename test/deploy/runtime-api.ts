import { type IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serve } from '../support/serve.ts';

/** The result of an invocation, as its process or Lambda reports it. */
export interface Outcome {
  /** The answer from its JSON, if the handler answered. */
  readonly answer?: unknown;
  /** The error that the handler threw, or the error of Lambda if the process ended. */
  readonly error?: { readonly errorType: string; readonly errorMessage: string };
}

/** An event for a process, with the headers of the Runtime API. */
interface Delivery {
  readonly requestId: string;
  readonly event: unknown;
  readonly deadlineMs: number;
}

/** Serves the Runtime API to one process. See https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html */
export async function startRuntimeApi(functionArn: string) {
  /** Resolves if the process could not import its handler, or ended, or is late. */
  const failed = Promise.withResolvers<Outcome>();
  let next = Promise.withResolvers<ServerResponse>();
  let answered = Promise.withResolvers<Outcome>();

  const accept = async (request: IncomingMessage, response: ServerResponse) => {
    const operation = /^\/2018-06-01\/runtime\/(?:invocation\/(?:[\w-]{36}\/)?)?([\w/]+)$/.exec(request.url ?? '')?.[1];
    if (operation === 'next') return next.resolve(response);
    const body = JSON.parse(await text(request));
    response.writeHead(202).end('{}');
    if (operation === 'response') return answered.resolve({ answer: body });
    const { errorType, errorMessage } = body;
    (operation === 'error' ? answered : failed).resolve({ error: { errorType, errorMessage } });
  };
  const { url, close } = await serve((request, response) => {
    accept(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  return {
    /** The value of `AWS_LAMBDA_RUNTIME_API`. */
    host: new URL(url).host,
    close,
    /** Waits until the process asks for an event, or has failed. */
    ready: async () => void (await Promise.race([next.promise, failed.promise])),
    /** Ends the current invocation and all later ones. */
    fail: failed.resolve,
    /** Delivers an event to the process, and waits for the end of the invocation. */
    async deliver({ requestId, event, deadlineMs }: Delivery): Promise<Outcome> {
      const response = await Promise.race([next.promise, failed.promise]);
      if (!(response instanceof ServerResponse)) return response;
      next = Promise.withResolvers();
      answered = Promise.withResolvers();
      response.writeHead(200, {
        'content-type': 'application/json',
        'lambda-runtime-aws-request-id': requestId,
        'lambda-runtime-deadline-ms': String(deadlineMs),
        'lambda-runtime-invoked-function-arn': functionArn,
      });
      response.end(JSON.stringify(event));
      return Promise.race([answered.promise, failed.promise]);
    },
  };
}
