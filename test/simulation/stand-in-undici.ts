import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import type { Network, NetworkRequest } from './network.ts';

/*
 * Stands in for undici where lib/kubernetes uses it: the requests of Agent and Client go to the network of the world. The
 * certificate authority that a process trusts has its network: it is all that both classes get of its kubeconfig.
 */

/** The text of a CA, as it is in a kubeconfig of one process. */
class Authority extends Buffer {
  network?: Network;
}

export function connectNetwork(ca: string, network: Network): Buffer {
  const authority: Authority = Object.setPrototypeOf(Buffer.from(ca), Authority.prototype);
  authority.network = network;
  return authority;
}

interface Options {
  readonly connect: Pick<ReturnType<ApiServerAccess['tls']>, 'ca'>;
}

interface UndiciRequest extends NetworkRequest {
  readonly origin?: string;
  readonly signal: AbortSignal;
}

class Sender {
  readonly #network: Network;
  readonly #origin: string;

  constructor(origin: string, { connect }: Options) {
    this.#origin = origin;
    const { network } = connect.ca as Authority;
    if (network === undefined) throw new Error('a connection without a network');
    this.#network = network;
  }

  async request({ origin = this.#origin, signal, ...request }: UndiciRequest): Promise<object> {
    const { status, body } = await this.#network(new URL(origin).hostname, request, signal);
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    return { statusCode: status, headers: { 'content-type': 'application/json' }, body: [bytes] };
  }

  async destroy(): Promise<void> {}
}

export class Agent extends Sender {
  constructor(options: Options) {
    super('', options);
  }
}

export class Client extends Sender {}
