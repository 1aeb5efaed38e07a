import type { HttpClient } from './http-client.ts';

/** A connection on which a server has answered 200. */
interface KeptConnection {
  readonly client: HttpClient;
  readonly openedAtMs: number;
}

/** The share of a probe's time for an answer on a kept connection. */
export const KEPT_LIMIT_MS = 1_000;
/**
 * Allows two more probes at ticks of ten seconds. Every third probe makes a new connection, which checks the
 * certificate.
 */
const LONGEST_KEPT_MS = 25_000;
/** Each takes some 120 KB. */
const MOST_KEPT = 128;

/** Whether a probe may begin with this connection. */
function mayReuse(openedAtMs: number, nowMs: number): boolean {
  return nowMs >= openedAtMs && nowMs - openedAtMs < LONGEST_KEPT_MS;
}

/** Whether a new connection is kept. A server that took longer needs the whole time of a probe on a new one. */
function mayKeep(status: number, tookMs: number): boolean {
  return status === 200 && tookMs < KEPT_LIMIT_MS;
}

/** The connections of probes that a process keeps. They do not keep the process running. */
export class KeptConnections {
  readonly #nowMs: () => number;
  readonly #kept = new Map<string, KeptConnection>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns the answer on the kept connection if it is 200. Otherwise the connection is closed. */
  async askKept<Answer extends { readonly status: number }>(
    key: string,
    ask: (client: HttpClient) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    const found = this.#take(key);
    if (found === undefined) return undefined;
    const answer = await ask(found.client).catch(() => undefined);
    if (answer?.status === 200) {
      this.#keep(key, found);
      return answer;
    }
    found.client.destroy();
    return undefined;
  }

  /** Returns the answer on a new connection, and may keep the connection. */
  async askNew<Answer extends { readonly status: number }>(
    key: string,
    client: HttpClient,
    ask: (client: HttpClient) => Promise<Answer>,
  ): Promise<Answer> {
    const openedAtMs = this.#nowMs();
    let isKept = false;
    try {
      const answer = await ask(client);
      isKept = mayKeep(answer.status, this.#nowMs() - openedAtMs);
      return answer;
    } finally {
      if (isKept) this.#keep(key, { client, openedAtMs });
      else client.destroy();
    }
  }

  close(): void {
    for (const { client } of this.#kept.values()) client.destroy();
    this.#kept.clear();
  }

  /** Removes it, so that no two probes use one connection. */
  #take(key: string): KeptConnection | undefined {
    const found = this.#kept.get(key);
    this.#kept.delete(key);
    if (found === undefined || (found.client.isIdle && mayReuse(found.openedAtMs, this.#nowMs()))) return found;
    found.client.destroy();
    return undefined;
  }

  /** When there is no room, the others stay: if the oldest were closed, a process with many servers would reuse none. */
  #keep(key: string, connection: KeptConnection): void {
    const nowMs = this.#nowMs();
    for (const [each, { client, openedAtMs }] of this.#kept) {
      if (mayReuse(openedAtMs, nowMs)) continue;
      client.destroy();
      this.#kept.delete(each);
    }
    if (this.#kept.size < MOST_KEPT && !this.#kept.has(key)) this.#kept.set(key, connection);
    else connection.client.destroy();
  }
}
