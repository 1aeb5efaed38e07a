import { createHash, timingSafeEqual } from 'node:crypto';
import type { ReadSecretText } from '../aws/store-client.ts';
import { setLatest } from '../util/values.ts';

/** `unknown`: the tokens cannot be read. `reason` is only for the log. */
export type TokenCheck =
  | { readonly outcome: 'right' | 'wrong' }
  | { readonly outcome: 'unknown'; readonly reason: string };

export interface TokensOptions {
  readonly read: ReadSecretText;
  readonly nameOf: (cluster: string) => string;
  readonly nowMs: () => number;
}

interface Kept {
  /** The digests of the tokens, which have equal length. Empty until the tokens are first read. */
  readonly digests: readonly Buffer[];
  readonly readAtMs: number;
  /** The time of the last attempt to read the tokens. If it failed, `fault` is the reason. */
  readonly requestedAtMs: number;
  /**
   * The time of the last read that an unknown token caused. The delay between such reads depends only on this time, so that a
   * caller with a wrong token cannot find out when valid tokens caused reads.
   */
  readonly guessedAtMs: number;
  readonly fault?: string;
}

const NEVER_READ: Kept = {
  digests: [],
  readAtMs: Number.NEGATIVE_INFINITY,
  requestedAtMs: Number.NEGATIVE_INFINITY,
  guessedAtMs: Number.NEGATIVE_INFINITY,
};

const KEEP_MS = 5 * 60_000;
/** An accepted token stays valid this long while the store fails. */
const KEEP_THROUGH_FAILURE_MS = 15 * 60_000;
/**
 * The shortest time between two reads if the second one is caused by an unknown token, which may be new, or by a failure of the
 * first read.
 */
const READ_AGAIN_MS = 10_000;
/**
 * The limit of reads that unknown tokens cause. The burst is large enough for the first review of each of `MOST_KEPT` clusters,
 * whose tokens have not been read yet.
 */
const READS_FOR_GUESSES = { burst: 1_000, eachSecond: 2 };
const MOST_KEPT = 1_000;

/** A cluster has one token, and during a rotation also the next one. */
const MOST_TOKENS = 2;
const TOKEN = /^[\x21-\x7e]{32,512}$/;

export class ClusterTokens {
  readonly #options: TokensOptions;
  readonly #kept = new Map<string, Kept>();
  /**
   * The clusters for which no tokens were found. A caller can invent any number of cluster names, so these are in a separate map,
   * in which they displace only one another.
   */
  readonly #withoutTokens = new Map<string, Kept>();
  readonly #guesses = new Rate(READS_FOR_GUESSES);

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  /**
   * Checks a token. The steps and the time for a wrong token do not depend on whether the cluster exists, and the time is the
   * same as for a valid token. Beyond `READS_FOR_GUESSES`, an unknown token is refused without a read.
   */
  async check(cluster: string, token: string, signal: AbortSignal): Promise<TokenCheck> {
    if (!TOKEN.test(token)) return { outcome: 'wrong' };
    const known = this.#kept.get(cluster) ?? this.#withoutTokens.get(cluster) ?? NEVER_READ;
    const kept = this.#mustRead(known, token) ? await this.#renew(cluster, token, signal, known) : known;
    const isKnown = isAmong(token, kept.digests);
    if (kept.fault === undefined) return { outcome: isKnown ? 'right' : 'wrong' };
    const mayStill = isKnown && this.#options.nowMs() - kept.readAtMs < KEEP_THROUGH_FAILURE_MS;
    return mayStill ? { outcome: 'right' } : { outcome: 'unknown', reason: kept.fault };
  }

  #mustRead({ digests, readAtMs, requestedAtMs, guessedAtMs }: Kept, token: string): boolean {
    const nowMs = this.#options.nowMs();
    if (isAmong(token, digests)) return nowMs - readAtMs >= KEEP_MS && nowMs - requestedAtMs >= READ_AGAIN_MS;
    return nowMs - guessedAtMs >= READ_AGAIN_MS && this.#guesses.admits('', nowMs);
  }

  async #renew(cluster: string, token: string, signal: AbortSignal, before: Kept): Promise<Kept> {
    const digests = await this.#read(cluster, signal);
    const requestedAtMs = this.#options.nowMs();
    const isFailed = typeof digests === 'string';
    const guessedAtMs = isAmong(token, isFailed ? before.digests : digests) ? before.guessedAtMs : requestedAtMs;
    const kept: Kept = isFailed
      ? { ...before, requestedAtMs, guessedAtMs, fault: digests }
      : { digests, readAtMs: requestedAtMs, requestedAtMs, guessedAtMs };
    // A read that the deadline ended shows nothing about the store. Its result is not kept, so the next request reads again.
    if (!signal.aborted) this.#keep(cluster, kept);
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

  #keep(cluster: string, kept: Kept): void {
    this.#kept.delete(cluster);
    this.#withoutTokens.delete(cluster);
    const among = kept.digests.length > 0 ? this.#kept : this.#withoutTokens;
    setLatest(among, cluster, kept, MOST_KEPT);
  }
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
  return createHash('sha256').update(token).digest();
}

/** The rate at which this process answers reviews of one cluster. */
export const REVIEWS = { burst: 1_000, eachSecond: 20 };

/**
 * Limits how often each key may be used. The class does not limit the number of keys. Each key is therefore a constant, or the
 * name of a cluster whose token was valid.
 */
export class Rate {
  readonly #limit: typeof REVIEWS;
  readonly #buckets = new Map<string, { readonly left: number; readonly atMs: number }>();

  constructor(limit: typeof REVIEWS) {
    this.#limit = limit;
  }

  /** Returns whether the limit admits this many uses of the key now, and counts them. */
  admits(key: string, nowMs: number, uses = 1): boolean {
    const { burst, eachSecond } = this.#limit;
    const { left, atMs } = this.#buckets.get(key) ?? { left: burst, atMs: nowMs };
    const refilled = Math.min(burst, left + (Math.max(0, nowMs - atMs) / 1000) * eachSecond);
    const isLeft = refilled >= uses;
    this.#buckets.set(key, { left: isLeft ? refilled - uses : refilled, atMs: nowMs });
    return isLeft;
  }
}
