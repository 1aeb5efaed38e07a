import type { ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import { Server as NetServer } from 'node:net';
import { text } from 'node:stream/consumers';
import type { CertifiedKey } from '../../local/stand-in/identity.ts';
import { serve } from './serve.ts';

export interface SeenRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** How the server answers. `cutOff` sends this much of the body and drops the connection. `hang` never answers. */
export type Reaction =
  | { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  | { readonly cutOff: unknown; readonly status?: number }
  | { readonly hang: true }
  | { readonly reset: true };

export type FaultServer = Awaited<ReturnType<typeof startFaultServer>>;

/** Starts an API server that answers as the test specifies. With a certificate it uses TLS. */
export async function startFaultServer(
  react: (request: SeenRequest, index: number) => Reaction | Promise<Reaction>,
  tls?: CertifiedKey,
  host?: string,
) {
  const requests: SeenRequest[] = [];
  const { url, server, close } = await serve(
    (incoming, response) => {
      void text(incoming).then(
        async (body) => {
          const { method = '', url: path = '', headers } = incoming;
          const request = { method, path, headers, body };
          requests.push(request);
          perform(await react(request, requests.length - 1), response);
        },
        () => response.destroy(),
      );
    },
    tls,
    host,
  );
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  return {
    url,
    requests: requests as readonly SeenRequest[],
    connections: () => connections,
    /** Accepts no more connections but keeps open ones. The `close` of an HTTP server would close idle ones. */
    refuse: () => void NetServer.prototype.close.call(server),
    setCertificate: (next: CertifiedKey) => server instanceof HttpsServer && server.setSecureContext(next),
    stop: close,
  };
}

/** Returns a `Status`, with which the API answers a failed request. */
export function failure(code: number, reason: string, message = reason, details: object = {}): Reaction {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details };
  return { status: code, body };
}

function perform(reaction: Reaction, response: ServerResponse): void {
  if ('hang' in reaction) return;
  if ('reset' in reaction) return void response.destroy();
  if ('cutOff' in reaction) {
    const bytes = Buffer.isBuffer(reaction.cutOff) ? reaction.cutOff : Buffer.from(JSON.stringify(reaction.cutOff));
    const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
    response.writeHead(reaction.status ?? 200, headers);
    return void response.write(firstHalf(bytes), () => response.destroy());
  }
  const { status = 200, headers = {}, body = {} } = reaction;
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  response.writeHead(status, { 'content-type': raw ? 'text/plain' : 'application/json', ...headers });
  response.end(raw ? body : JSON.stringify(body));
}

export function firstHalf(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.floor(bytes.length / 2));
}
