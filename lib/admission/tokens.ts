import { hash, timingSafeEqual } from 'node:crypto';
import type { ReadSecretText } from '../aws/store-client.ts';
import { setLatest } from '../util/values.ts';

/** `unknown`: the tokens cannot be read now, and the caller must try again. `reason` is only for the log. */
export type TokenCheck =
  | { readonly outcome: 'right' | 'wrong' }
  | { readonly outcome: 'unknown'; readonly reason: string };

export interface TokensOptions {
  readonly read: ReadSecretText;
  readonly nameOf: (cluster: string) => string;
  /** Returns the names of all registered clusters. */
  readonly listClusters: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  readonly nowMs: () => number;
}

interface Kept {
  /** The digests of the tokens, all of the same length. */
  readonly digests: readonly Buffer[];
  readonly readAtMs: number;
  /** The time of the last attempt to read the tokens. If the attempt failed, `fault` is the reason. */
  readonly requestedAtMs: number;
  readonly fault?: string;
}

const NEVER_MS = Number.NEGATIVE_INFINITY;
const NEVER_READ: Kept = { digests: [], readAtMs: NEVER_MS, requestedAtMs: NEVER_MS };

const KEEP_MS = 5 * 60_000;
/** While the store fails, an accepted token stays valid this long after the last successful read. */
const KEEP_THROUGH_FAILURE_MS = 15 * 60_000;
/** Within this time, requests with a valid token cause at most one read of a cluster's tokens. */
const READ_AGAIN_MS = 10_000;
/**
 * The limit of look-ups for unknown tokens. A look-up reads the tokens of the request's cluster, and of at most
 * `MOST_WAITING_READ` other clusters.
 */
const LOOK_UPS = { burst: 100, eachSecond: 2 };
const MOST_WAITING_READ = 25;
/** The shortest time between two reads of the cluster list, which is read only while unknown tokens exceed `LOOK_UPS`. */
const LIST_AGAIN_MS = 60_000;
const MOST_KEPT = 10_000;

/** A cluster has one token, or two during a rotation. */
const MOST_TOKENS = 2;
const TOKEN = /^[\x21-\x7e]{32,512}$/;

/**
 * Checks tokens in memory. `LOOK_UPS` limits the reads for unknown tokens, which may be invented or new. Beyond this limit, the
 * caller must try again, and later look-ups also read the tokens of the request's cluster if it is registered. The answer to an
 * unknown token, and its timing, depend on the look-ups of this process and not on the cluster name, so they do not reveal which
 * clusters exist.
 */
export class ClusterTokens {
  readonly #options: TokensOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #lookUps = new Rate(LOOK_UPS);
  #registered: ReadonlySet<string> = new Set();
  #listedAtMs = NEVER_MS;
  /** Registered clusters whose tokens were not read since an unknown token came. The cluster that waits longest is first. */
  readonly #waiting = new Set<string>();
  /** New clusters of the cluster list, as many as fit in memory. The next look-ups also read the tokens of these clusters. */
  readonly #unread = new Set<string>();

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  /** Checks a token. A wrong token and a valid token that is not in memory yet take the same steps. */
  async check(cluster: string, token: string, signal: AbortSignal): Promise<TokenCheck> {
    if (!TOKEN.test(token)) return { outcome: 'wrong' };
    const known = this.#kept.get(cluster) ?? NEVER_READ;
    if (isAmong(token, known.digests)) {
      const { nowMs } = this.#options;
      const isOld = nowMs() - known.readAtMs >= KEEP_MS && nowMs() - known.requestedAtMs >= READ_AGAIN_MS;
      return verdict(isOld ? await this.#renew(cluster, signal) : known, token, nowMs());
    }
    if (!this.#lookUps.admits('', this.#options.nowMs())) return this.#wait(cluster, signal);
    const others = new Set([...this.#waiting, ...this.#unread].filter((name) => name !== cluster));
    const names = [cluster, ...[...others].slice(0, MOST_WAITING_READ)];
    const [kept] = await Promise.all(names.map((name) => this.#renew(name, signal)));
    return verdict(kept ?? NEVER_READ, token, this.#options.nowMs());
  }

  async #wait(cluster: string, signal: AbortSignal): Promise<TokenCheck> {
    const nowMs = this.#options.nowMs();
    if (nowMs - this.#listedAtMs >= LIST_AGAIN_MS) {
      this.#listedAtMs = nowMs;
      const before = this.#registered;
      // If the list cannot be read, the last list is used for a minute, so that not every request tries again.
      this.#registered = await this.#options.listClusters(signal).catch(() => before);
      const unread = [...this.#registered].filter((name) => !before.has(name) && !this.#kept.has(name));
      const room = MOST_KEPT - this.#kept.size - this.#unread.size;
      for (const name of unread.slice(0, Math.max(0, room))) this.#unread.add(name);
    }
    if (this.#registered.has(cluster)) this.#waiting.add(cluster);
    const reason = 'too many unknown tokens: the tokens of this cluster are read with the next look-up';
    return { outcome: 'unknown', reason };
  }

  async #renew(cluster: string, signal: AbortSignal): Promise<Kept> {
    this.#waiting.delete(cluster);
    this.#unread.delete(cluster);
    const digests = await this.#read(cluster, signal);
    const requestedAtMs = this.#options.nowMs();
    const kept: Kept =
      typeof digests === 'string'
        ? { ...(this.#kept.get(cluster) ?? NEVER_READ), requestedAtMs, fault: digests }
        : { digests, readAtMs: requestedAtMs, requestedAtMs };
    // A read that the deadline ended shows nothing about the store. Its result is not kept, so the next request reads again.
    if (signal.aborted) return kept;
    if (kept.digests.length > 0) setLatest(this.#kept, cluster, kept, MOST_KEPT);
    else this.#kept.delete(cluster);
    return kept;
  }

  async #read(cluster: string, signal: AbortSignal): Promise<readonly Buffer[] | string> {
    const name = this.#options.nameOf(cluster);
    const found = await this.#options.read(name, signal);
    if (found.outcome === 'absent') return [];
    if (found.outcome === 'failed') return `${name} cannot be read: ${found.reason}`;
    const tokens = tokensIn(found.text);
    return tokens?.map(digestOf) ?? `${name} is not one or two tokens of 32 letters or more, a line each`;
  }
}

function verdict({ digests, readAtMs, fault }: Kept, token: string, nowMs: number): TokenCheck {
  const isKnown = isAmong(token, digests);
  if (fault === undefined) return { outcome: isKnown ? 'right' : 'wrong' };
  const mayStill = isKnown && nowMs - readAtMs < KEEP_THROUGH_FAILURE_MS;
  return mayStill ? { outcome: 'right' } : { outcome: 'unknown', reason: fault };
}

function tokensIn(text: string): readonly string[] | undefined {
  const lines = text.split('\n').map((line) => line.trim());
  const tokens = lines.filter((line) => line !== '');
  const areRight = tokens.length > 0 && tokens.length <= MOST_TOKENS && tokens.every((token) => TOKEN.test(token));
  return areRight ? tokens : undefined;
}

function isAmong(token: string, digests: readonly Buffer[]): boolean {
  const digest = digestOf(token);
  let found = false;
  for (const each of digests) found = timingSafeEqual(digest, each) || found;
  return found;
}

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** The maximum rate at which this process answers reviews of one cluster. */
export const REVIEWS = { burst: 1_000, eachSecond: 20 };

/** Limits the uses of each key, not the number of keys: each is a constant, or a cluster name that came with a valid token. */
export class Rate {
  readonly #limit: typeof REVIEWS;
  readonly #buckets = new Map<string, { readonly left: number; readonly atMs: number }>();

  constructor(limit: typeof REVIEWS) {
    this.#limit = limit;
  }

  /** Returns whether the limit admits this many uses of the key now. Counts only admitted uses. */
  admits(key: string, nowMs: number, uses = 1): boolean {
    const { burst, eachSecond } = this.#limit;
    const { left, atMs } = this.#buckets.get(key) ?? { left: burst, atMs: nowMs };
    const refilled = Math.min(burst, left + (Math.max(0, nowMs - atMs) / 1000) * eachSecond);
    const isLeft = refilled >= uses;
    this.#buckets.set(key, { left: isLeft ? refilled - uses : refilled, atMs: nowMs });
    return isLeft;
  }
}
