import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';

export interface LocalRequest {
  readonly method?: string;
  readonly body?: string;
  /** The key of the stand-in API server. Default: the key of the test stand-ins. */
  readonly key?: string;
  /** Headers that are added to the default ones or replace them. `undefined` removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** Sends a request to a server on this machine. Unlike fetch, it can set any Host and Origin. */
export async function requestLocal(url: string, { method = 'GET', body, key = 'test', headers }: LocalRequest = {}) {
  const { protocol, hostname, port, host, pathname, search } = new URL(url);
  const type = body === undefined ? undefined : 'application/json';
  const own = Object.entries({ host, authorization: `Bearer ${key}`, 'content-type': type, ...headers });
  const sent = Object.fromEntries(own.filter((entry): entry is [string, string] => entry[1] !== undefined));
  const options = { hostname, port, path: pathname + search, method, headers: sent, agent: false };
  const request =
    protocol === 'https:' ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
  // After the answer, the server may close the connection while the body is still being sent.
  const [response] = (await once(request.on('error', () => undefined).end(body), 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) };
}
