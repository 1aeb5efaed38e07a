import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** Lambda's Invoke API on a loopback port, for functions of this process. */
export interface LambdaApi {
  readonly endpoint: string;
  close(): Promise<void>;
}

const INVOKE = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;

/** What a handler throws is answered as Lambda's own runtime does. */
export async function startLambdaApi(functions: Readonly<Record<string, (event: unknown) => Promise<unknown>>>) {
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const [, name = ''] = INVOKE.exec(request.url ?? '') ?? [];
    const invoke = functions[decodeURIComponent(name)];
    if (invoke === undefined || request.method !== 'POST') {
      response.writeHead(404, { 'x-amzn-errortype': 'ResourceNotFoundException' }).end('{}');
      return;
    }
    const event = await json(request);
    try {
      response.writeHead(200).end(JSON.stringify(await invoke(event)));
    } catch (error) {
      const { name: errorType, message: errorMessage } = error instanceof Error ? error : new Error(String(error));
      response.writeHead(200, { 'x-amz-function-error': 'Unhandled' }).end(JSON.stringify({ errorType, errorMessage }));
    }
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const api: LambdaApi = {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return api;
}
