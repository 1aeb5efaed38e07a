import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LocalReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns a listener that sends the answer to each request. If `answer` fails, the connection ends. */
export function answering(answer: (request: IncomingMessage) => Promise<LocalReply>): RequestListener {
  return (request, response) => {
    answer(request)
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  };
}

/** Starts a server on the loopback (`port` 0: a free port). `host` is `127.0.0.1:<port>`. */
export async function listenOnLoopback(server: Server, port = 0) {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => closeAtOnce(server) };
}

/** Closes a server and every connection. */
export function closeAtOnce(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.close((error) => (error ? reject(error) : resolve()));
    server.closeAllConnections();
  });
}

export interface LocalRules {
  /** The server's own address: `127.0.0.1:<port>`. */
  readonly host: string;
  readonly key: string;
  readonly keyOf: (request: IncomingMessage) => string | undefined;
  readonly mediaTypes: readonly string[];
  /** Returns true for paths that a GET request may read without the key. Default: all paths need the key. */
  readonly isPublic?: (path: string) => boolean;
}

export interface RefusedRequest {
  readonly status: 401 | 403 | 415 | 421;
  readonly message: string;
}

/** Returns a key that no other user of this machine and no web page can guess. */
export function newRunKey(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Returns the reason to refuse a request before its body is read. Other users of this machine and web pages in its browsers can
 * connect to a loopback port. But a page sends its `Origin`, a page with DNS rebinding sends its `Host`, and only processes of this
 * user know the key.
 */
export function refusalOf(request: IncomingMessage, rules: LocalRules): RefusedRequest | undefined {
  const { method = '', url = '/', headers } = request;
  if (headers.origin !== undefined) return { status: 403, message: 'Requests from web pages are refused.' };
  if (headers.host !== rules.host) return { status: 421, message: `Send the request to ${rules.host}.` };
  const isPublic = method === 'GET' && rules.isPublic?.(url) === true;
  if (!isPublic && !isSame(rules.keyOf(request), rules.key)) {
    return { status: 401, message: 'Send the key of this run. Only the user who started it can read it.' };
  }
  if (hasBody(request) && !rules.mediaTypes.includes(mediaTypeOf(headers['content-type']))) {
    return { status: 415, message: `Send the body as ${rules.mediaTypes.join(' or ')}.` };
  }
  return undefined;
}

function hasBody({ method = '', headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return ['POST', 'PUT', 'PATCH'].includes(method) || encoding !== undefined || length !== '0';
}

function mediaTypeOf(header = ''): string {
  return header.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Compares two keys in constant time. */
export function isSame(given: string | undefined, key: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  return given !== undefined && timingSafeEqual(digest(given), digest(key));
}

export function bearerOf({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  return /^Bearer (\S+)$/.exec(authorization)?.[1];
}

/**
 * Returns the key in a request to the table server: the access key id. dynalite checks no signature, and none is necessary,
 * because only a process that can read this user's files knows the key.
 */
export function tableKeyOf({ headers: { authorization = '' } }: IncomingMessage): string | undefined {
  return /^AWS4-HMAC-SHA256 Credential=([^/,\s]+)\//.exec(authorization)?.[1];
}

/** Returns the header from which {@link tableKeyOf} reads the key. */
export function tableAuthorization(key: string): { readonly authorization: string } {
  return { authorization: `AWS4-HMAC-SHA256 Credential=${key}/` };
}
