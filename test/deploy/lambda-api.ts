import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** Lambda's Invoke API on a loopback port, for functions of this process. */
export interface LambdaApi {
  readonly endpoint: string;
  close(): Promise<void>;
}

type Functions = Readonly<Record<string, (event: unknown) => Promise<unknown>>>;

const INVOKE = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;

/** What a handler throws is answered as Lambda's own runtime does. */
export async function startLambdaApi(functions: Functions): Promise<LambdaApi> {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const [, name = ''] = INVOKE.exec(request.url ?? '') ?? [];
    const invoke = functions[decodeURIComponent(name)];
    if (invoke === undefined || request.method !== 'POST') {
      response.writeHead(404, { 'x-amzn-errortype': 'ResourceNotFoundException' }).end('{}');
      return;
    }
    const event = await json(request);
    const answered = await invoke(event).then(
      (value) => ({ headers: {}, value }),
      (error: unknown) => ({ headers: { 'x-amz-function-error': 'Unhandled' }, value: errorOf(error) }),
    );
    response.writeHead(200, answered.headers).end(JSON.stringify(answered.value));
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function errorOf(error: unknown): object {
  const { name: errorType, message: errorMessage } = error instanceof Error ? error : new Error(String(error));
  return { errorType, errorMessage };
}
