import { constants } from 'node:crypto';
import { Agent, type ClientRequest, type IncomingMessage, request as requestOverHttp } from 'node:http';
import { request as requestOverTls, Agent as TlsAgent } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, DEFAULT_CIPHERS } from 'node:tls';
import { hostOf } from '../util/hosts.ts';
import { defined } from '../util/values.ts';
import type { TlsMaterial } from './kubeconfig.ts';
import { CONNECT_TIMEOUT } from './network-fault.ts';
import { type Body, OverBound } from './reply-bounds.ts';

export interface HttpClientOptions {
  readonly tls: TlsMaterial;
  readonly lookup?: LookupFunction | undefined;
  /** The maximum number of connections, which stay open for later requests. If absent, each request has its own connection. */
  readonly connections?: number;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface HttpReply {
  readonly status: number;
  /** The headers. Names are in lower case, and the values of repeated headers are joined. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
}

/** Idle connections stay open for three intervals of kubernetes-service, which is less than load balancers allow (60 s). */
const KEEP_ALIVE_MS = 30_000;
/** The time limit for TCP connect and TLS handshake. It allows for one lost SYN, which is sent again after one second. */
const CONNECT_TIMEOUT_MS = 3_000;
const SILENCE_MS = 20_000;
const LARGEST_HEADERS = 16 * 1024;
/** The maximum number of session tickets of a connection. Servers send one or two. Node keeps certificates with each ticket. */
const MOST_TICKETS = 16;
/** The maximum number of TLS secrets of a connection. A handshake has up to six, a key update of TLS 1.3 adds one or two. */
const MOST_SECRETS = 32;
/** The maximum number of 1xx replies to one request. Kubernetes sends no such replies, and proxies send a few. */
const MOST_INTERIM_REPLIES = 10;

/**
 * Disables DHE, which no Kubernetes API server uses: the server chooses the group, and a group of 10,000 bits blocks the event
 * loop for a second per handshake, before any certificate is verified. Disables renegotiation, which a TLS 1.2 server could
 * request repeatedly. Node checks the certificate again even for a refused renegotiation, so `endAfter` ends the connection.
 */
const TLS_LIMITS = { ciphers: `${DEFAULT_CIPHERS}:!DHE`, secureOptions: constants.SSL_OP_NO_RENEGOTIATION } as const;

/** Trusts each certificate of the CA data, as Go does, even if it is an intermediate certificate or the server's own. */
const TRUST = { allowPartialTrustChain: true } as const;

/** Sends requests to one server, over HTTP/1.1. */
export class HttpClient {
  readonly #host: string;
  readonly #port: string;
  readonly #isTls: boolean;
  readonly #agent: Agent;
  /** Connections whose handshake already has a time limit. */
  readonly #known = new WeakSet<Socket>();

  /** @param origin scheme, host and port */
  constructor(origin: string, { tls, lookup, connections }: HttpClientOptions) {
    const url = new URL(origin);
    this.#host = hostOf(url);
    this.#port = url.port;
    this.#isTls = url.protocol === 'https:';
    const { servername, ...material } = tls;
    const options = {
      ...(connections !== undefined && { keepAlive: true, maxSockets: connections }),
      timeout: KEEP_ALIVE_MS,
      ...defined({ lookup }),
    };
    this.#agent = this.#isTls
      ? new TlsAgent({ ...options, ...material, ...verifiedAs(servername ?? this.#host), ...TLS_LIMITS, ...TRUST })
      : new Agent(options);
  }

  /** Returns a reply of any status while its body still arrives. Reading an incomplete body throws. */
  async request({ method, path, headers, body }: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    signal.throwIfAborted();
    const send = this.#isTls ? requestOverTls : requestOverHttp;
    const request = send({
      host: this.#host,
      port: this.#port,
      agent: this.#agent,
      method,
      path,
      headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) },
      maxHeaderSize: LARGEST_HEADERS,
      joinDuplicateHeaders: true,
    });
    const replied = replyTo(request, signal);
    request.once('socket', (socket) => {
      if (this.#known.has(socket)) return;
      this.#known.add(socket);
      endUnlessConnected(socket, this.#isTls ? 'secureConnect' : 'connect');
      endAfter(1, 'handshake of TLS', socket, 'secureConnect');
      endAfter(MOST_TICKETS, 'session tickets of TLS', socket, 'session');
      endAfter(MOST_SECRETS, 'secrets of TLS', socket, 'keylog');
    });
    endAfter(MOST_INTERIM_REPLIES, 'interim replies (1xx)', request, 'information');
    request.end(body);
    const reply = await replied;
    const received = Object.entries(reply.headers).map(([name, value]) => [name, String(value)]);
    return { status: reply.statusCode ?? 0, headers: Object.fromEntries(received), body: reply };
  }

  get isIdle(): boolean {
    return Object.keys(this.#agent.freeSockets).length > 0;
  }

  /** Closes all connections immediately, because a graceful end would wait for handshakes that never end. */
  destroy(): void {
    this.#agent.destroy();
  }
}

function replyTo(request: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let end = (error: Error) => void request.destroy(error);
  const abort = () => end(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  request.once('close', () => {
    signal.removeEventListener('abort', abort);
    // Node reports a reply that switches the protocol (101) neither as a response nor as an error.
    reject(new Error('the connection ended without a reply'));
  });
  request.on('error', reject);
  request.once('response', (reply) => {
    end = (error) => void reply.destroy(error);
    endInSilence(reply);
    resolve(reply);
  });
  return promise;
}

function endUnlessConnected(socket: Socket, event: 'connect' | 'secureConnect'): void {
  const timer = setTimeout(() => {
    const error = new Error(`no connection within ${CONNECT_TIMEOUT_MS} ms`);
    socket.destroy(Object.assign(error, { code: CONNECT_TIMEOUT }));
  }, CONNECT_TIMEOUT_MS);
  const stop = () => clearTimeout(timer);
  socket.once(event, stop).once('close', stop);
}

/** Ends the connection or request with an error if an event occurs too often. */
function endAfter(most: number, what: string, source: Socket | ClientRequest, event: string): void {
  let count = 0;
  source.on(event, () => {
    count += 1;
    if (count > most) source.destroy(new OverBound(`more than ${most} ${what}`));
  });
}

function endInSilence(reply: IncomingMessage): void {
  const { socket } = reply;
  const end = () => void reply.destroy(new Error(`the reply made no progress for ${SILENCE_MS} ms`));
  socket.setTimeout(SILENCE_MS).on('timeout', end);
  reply.once('close', () => socket.off('timeout', end));
}

/** Returns the options that verify the server's name. SNI must not contain an address, and servers in Go refuse a final dot. */
function verifiedAs(name: string): Pick<ConnectionOptions, 'servername' | 'checkServerIdentity'> {
  if (isIP(name) === 0) return { servername: name.replace(/\.$/, '') };
  return { checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate) };
}
