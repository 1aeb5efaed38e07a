import { createHash, timingSafeEqual } from 'node:crypto';
import type { ReadSecretText } from '../aws/store-client.ts';

/** `unknown`: the tokens cannot be read. The reason is for the log. */
export type TokenCheck =
  | { readonly outcome: 'right' | 'wrong' }
  | { readonly outcome: 'unknown'; readonly reason: string };

type IsRegistered = (cluster: string) => Promise<boolean>;

export interface TokensOptions {
  readonly read: ReadSecretText;
  readonly nameOf: (cluster: string) => string;
  readonly nowMs: () => number;
}

interface Kept {
  /** Digests of the tokens, all of one length, and when they were read. None: they never were. */
  readonly digests: readonly Buffer[];
  readonly readAtMs: number;
  /** When they were last requested, and why that failed. */
  readonly requestedAtMs: number;
  readonly fault?: string;
}

/** How long a token is accepted without reading again. */
const KEEP_MS = 5 * 60_000;
/** A token that was accepted before stays valid for so long while the store fails. */
const KEEP_THROUGH_FAILURE_MS = 15 * 60_000;
/**
 * An unknown token may be new, and a store that failed may answer again; but guesses must not cause a read each.
 */
const READ_AGAIN_MS = 10_000;
const MOST_KEPT = 1_000;

/** One now, and one to change to. */
const MOST_TOKENS = 2;
const TOKEN = /^[\x21-\x7e]{32,512}$/;

/** The tokens by which API servers authenticate. Each cluster has its own: a leaked one opens no other. */
export class ClusterTokens {
  readonly #options: TokensOptions;
  readonly #kept = new Map<string, Kept>();

  constructor(options: TokensOptions) {
    this.#options = options;
  }

  /**
   * Takes as long for a wrong token as for a right one. Calls `isRegistered` before tokens are read: invented names of
   * clusters cause no read.
   */
  async check(cluster: string, token: string, signal: AbortSignal, isRegistered: IsRegistered): Promise<TokenCheck> {
    if (!TOKEN.test(token)) return { outcome: 'wrong' };
    const known = this.#kept.get(cluster);
    if (known === undefined && !(await isRegistered(cluster))) return { outcome: 'wrong' };
    const kept = known === undefined || this.#mustRead(known, token) ? await this.#renew(cluster, signal) : known;
    const isKnown = isAmong(token, kept.digests);
    if (kept.fault === undefined) return { outcome: isKnown ? 'right' : 'wrong' };
    const mayStill = isKnown && this.#options.nowMs() - kept.readAtMs < KEEP_THROUGH_FAILURE_MS;
    return mayStill ? { outcome: 'right' } : { outcome: 'unknown', reason: kept.fault };
  }

  #mustRead({ digests, readAtMs, requestedAtMs }: Kept, token: string): boolean {
    const nowMs = this.#options.nowMs();
    return nowMs - requestedAtMs >= READ_AGAIN_MS && (nowMs - readAtMs >= KEEP_MS || !isAmong(token, digests));
  }

  async #renew(cluster: string, signal: AbortSignal): Promise<Kept> {
    const digests = await this.#read(cluster, signal);
    const requestedAtMs = this.#options.nowMs();
    const before = this.#kept.get(cluster) ?? { digests: [], readAtMs: Number.NEGATIVE_INFINITY };
    const kept: Kept =
      typeof digests === 'string'
        ? { ...before, requestedAtMs, fault: digests }
        : { digests, readAtMs: requestedAtMs, requestedAtMs };
    // A deadline proves nothing about the store: the next request reads.
    if (!signal.aborted) this.#keep(cluster, kept);
    return kept;
  }

  /** Returns the digests, or why there are none. */
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
    this.#kept.set(cluster, kept);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
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

/** Reviews of one cluster that this process answers in a row: a client that creates a thousand Services is no attack. */
const BURST = 1_000;
const EACH_SECOND = 20;

/**
 * Limits the reviews of one cluster in this process: all clusters of a stack share the function's concurrency. Beyond it a
 * review is refused before its body is read. Only clusters that proved their token are counted, so it stays small.
 */
export class ReviewRate {
  readonly #buckets = new Map<string, { readonly left: number; readonly atMs: number }>();

  /** Whether the cluster may have another review now. */
  admits(cluster: string, nowMs: number): boolean {
    const { left, atMs } = this.#buckets.get(cluster) ?? { left: BURST, atMs: nowMs };
    const refilled = Math.min(BURST, left + (Math.max(0, nowMs - atMs) / 1000) * EACH_SECOND);
    const isLeft = refilled >= 1;
    this.#buckets.set(cluster, { left: isLeft ? refilled - 1 : refilled, atMs: nowMs });
    return isLeft;
  }
}
