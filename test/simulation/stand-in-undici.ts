import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import type { Network, NetworkRequest } from './network.ts';

/*
 * Stands in for undici where lib/kubernetes uses it: the requests of Agent and Client go to the network of the world. The
 * certificate authority that a process trusts names the process, too: it is all that both classes get of its kubeconfig.
 */

/** The networks of processes, by the text that stands for their CA. */
const networks = new Map<string, Network>();

export function connectNetwork(ca: string, network: Network): void {
  networks.set(ca, network);
}

export function forgetNetworks(): void {
  networks.clear();
}

interface Options {
  readonly connect: Pick<ReturnType<ApiServerAccess['tls']>, 'ca'>;
}

interface UndiciRequest extends NetworkRequest {
  readonly origin?: string;
  readonly signal: AbortSignal;
}

class Sender {
  readonly #ca: string;
  readonly #origin: string;

  constructor(origin: string, { connect }: Options) {
    this.#origin = origin;
    this.#ca = String(connect.ca);
  }

  async request({ origin = this.#origin, signal, ...request }: UndiciRequest): Promise<object> {
    const network = networks.get(this.#ca);
    if (network === undefined) throw new Error(`no network for ${this.#ca}`);
    const { status, body } = await network(new URL(origin).hostname, request, signal);
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
