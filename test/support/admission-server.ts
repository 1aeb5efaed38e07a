import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AdmissionHandler } from '../../lib/admission/admission.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { Authority } from '../../local/stand-in/identity.ts';

/** A handler behind HTTPS on the loopback, in the place of a function URL. */
export interface AdmissionServer {
  readonly close: () => Promise<void>;
  /** Bodies of the requests that it answered. */
  readonly reviews: { readonly request: { readonly uid: string; readonly operation: string } }[];
}

export async function startAdmissionServer(
  handler: AdmissionHandler,
  { environment, authority, port }: { environment: Environment; authority: Authority; port: number },
): Promise<AdmissionServer> {
  const reviews: AdmissionServer['reviews'] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (body !== '') reviews.push(JSON.parse(body));
    const url = new URL(request.url ?? '/', 'https://127.0.0.1');
    const { method = '', headers } = request;
    const event = urlEvent({ method, path: url.pathname, query: url.search.slice(1), headers, body });
    const reply = await handler(event, { environment, getRemainingTimeInMillis: () => 30_000 });
    response.writeHead(reply.statusCode, reply.headers).end(reply.body);
  };
  const server = createServer(authority.issue(['127.0.0.1']), (request, response) => {
    // Whoever hangs up hears nothing.
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return { reviews, close };
}

/** A request to a function URL. */
export interface UrlRequest {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly body?: string;
  readonly cameAtMs?: number;
}

/** As a function URL sends it (payload format 2.0), as far as it is read. */
export function urlEvent(request: UrlRequest): object {
  const { method = 'POST', path = '/demo', query = '', headers = {}, body = '', cameAtMs } = request;
  return {
    version: '2.0',
    rawPath: path,
    rawQueryString: query,
    headers,
    requestContext: { http: { method, path }, ...(cameAtMs !== undefined && { timeEpoch: cameAtMs }) },
    ...(body !== '' && { body }),
    isBase64Encoded: false,
  };
}
