/** Reviews of one cluster that this process takes in a row: a client that creates a thousand Services is no flood. */
const BURST = 1_000;
const EACH_SECOND = 20;

/**
 * Limits what one cluster takes of this process: all clusters of a stack share the function's concurrency. Beyond it a
 * review is refused before its body is read. Only clusters that proved their token are counted, so it stays small.
 */
export class ReviewRate {
  readonly #buckets = new Map<string, { readonly left: number; readonly atMs: number }>();

  /** Whether the cluster may have another review now. */
  take(cluster: string, nowMs: number): boolean {
    const { left, atMs } = this.#buckets.get(cluster) ?? { left: BURST, atMs: nowMs };
    const refilled = Math.min(BURST, left + (Math.max(0, nowMs - atMs) / 1000) * EACH_SECOND);
    const isLeft = refilled >= 1;
    this.#buckets.set(cluster, { left: isLeft ? refilled - 1 : refilled, atMs: nowMs });
    return isLeft;
  }
}
