import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';

export interface LocalAnswer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

export interface LocalRequest {
  readonly method?: string;
  readonly body?: string;
  /** The key of the stand-in API server. Default: the key of the test stand-ins. */
  readonly key?: string;
  /** Headers that are added to the default ones or replace them. `undefined` removes one. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** Sends a request to a server on this machine. Unlike fetch, it can set any Host and Origin. */
export function requestLocal(
  url: string,
  { method = 'GET', body, key = 'test', headers }: LocalRequest = {},
): Promise<LocalAnswer> {
  const { protocol, hostname, port, host, pathname, search } = new URL(url);
  const type = body === undefined ? undefined : 'application/json';
  const own = { host, authorization: `Bearer ${key}`, 'content-type': type };
  const sent = Object.entries({ ...own, ...headers }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const options = { hostname, port, path: pathname + search, method, headers: Object.fromEntries(sent), agent: false };
  return new Promise((resolve, reject) => {
    const take = (response: import('node:http').IncomingMessage) => {
      const { statusCode: status = 0, headers: given } = response;
      text(response).then((answer) => resolve({ status, headers: given, body: answer }), reject);
    };
    const request =
      protocol === 'https:'
        ? httpsRequest({ ...options, rejectUnauthorized: false }, take)
        : httpRequest(options, take);
    request.once('error', reject).end(body);
  });
}
