import { type ListeningStandIn, listen } from './http-server.ts';
import type { Identity } from './identity.ts';
import type { StandInApiServer } from './stand-in-api-server.ts';

interface ApiServer {
  readonly url: string;
  /** Absent: it is dead, and its port silent. */
  listening?: ListeningStandIn;
}

/** The API servers of one control plane: each has a loopback port of its own, and all of them the same store. */
export class ApiServers {
  readonly #standIn: StandInApiServer;
  readonly #identity: Identity;
  readonly #byAddress = new Map<string, ApiServer>();

  private constructor(standIn: StandInApiServer, identity: Identity) {
    this.#standIn = standIn;
    this.#identity = identity;
  }

  /** One for each address that is published. */
  static async listen(
    standIn: StandInApiServer,
    identity: Identity,
    addresses: readonly string[],
  ): Promise<ApiServers> {
    const servers = new ApiServers(standIn, identity);
    for (const address of addresses) {
      const listening = await listen(standIn, identity);
      servers.#byAddress.set(address, { url: listening.url, listening });
    }
    return servers;
  }

  /** `https://127.0.0.1:<port>`: the same all its life. */
  urlOf(address: string): string {
    return this.#named(address).url;
  }

  /** As when its host fails: every connection breaks off, and new ones are refused. */
  async stop(address: string): Promise<void> {
    const server = this.#named(address);
    const { listening } = server;
    delete server.listening;
    await listening?.close();
  }

  /** @throws Error when somebody else has its port by now. */
  async start(address: string): Promise<void> {
    const server = this.#named(address);
    server.listening ??= await listen(this.#standIn, this.#identity, Number(new URL(server.url).port));
  }

  async close(): Promise<void> {
    for (const address of this.#byAddress.keys()) await this.stop(address);
  }

  #named(address: string): ApiServer {
    const server = this.#byAddress.get(address);
    if (server === undefined) throw new Error(`${address} is no API server of this control plane`);
    return server;
  }
}
