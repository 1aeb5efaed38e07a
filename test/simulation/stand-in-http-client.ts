import type { HttpClientOptions, HttpReply, HttpRequest } from '../../lib/kubernetes/http-client.ts';
import type { Network } from './network.ts';

/*
 * Replaces lib/kubernetes/http-client.ts, and sends requests to the network of the world. The network is passed in the CA of the
 * kubeconfig, because a client gets nothing else from its caller.
 */

/** The CA of the kubeconfig of one process, with the network of that process. */
class Authority extends Buffer {
  network?: Network;
}

export function connectNetwork(ca: string, network: Network): Buffer {
  const authority: Authority = Object.setPrototypeOf(Buffer.from(ca), Authority.prototype);
  authority.network = network;
  return authority;
}

export class HttpClient {
  readonly #network: Network;
  readonly #host: string;

  constructor(origin: string, { tls }: HttpClientOptions) {
    const { network } = tls.ca as Authority;
    if (network === undefined) throw new Error('a connection without a network');
    this.#network = network;
    this.#host = new URL(origin).hostname.replace(/[[\]]/g, '');
  }

  async request(request: HttpRequest, signal: AbortSignal): Promise<HttpReply> {
    const { status, body, date } = await this.#network(this.#host, request, signal);
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return {
      status,
      headers: { 'content-type': 'application/json', ...(date !== undefined && { date }) },
      body: [bytes],
    };
  }

  destroy(): void {}
}
