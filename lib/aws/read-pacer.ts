import { type Sleep, sleepUntilAborted } from '../kubernetes/api-calls.ts';
import { ClusterError } from '../kubernetes/cluster-port.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

/** The number of reads that may begin at the same time: as many as a message has clusters. Further reads wait. */
const READS_AT_ONCE = 16;
const READ_EVERY_MS = 50;
/** How long reads stay slow after a throttled read. Ten processes with slow reads stay within Parameter Store's 40 per second. */
const THROTTLED_MS = 60_000;
const THROTTLED_READ_EVERY_MS = 250;

/** Spreads the reads of kubeconfigs, because after a deployment every process has to read all of its kubeconfigs. */
export class ReadPacer {
  readonly #nowMs: () => number;
  readonly #sleep: Sleep;
  /** The scheduled time of the last read. After idle time, it is in the past, so that `READS_AT_ONCE` reads begin at once. */
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #throttledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number, sleep: Sleep = sleepUntilAborted) {
    this.#nowMs = nowMs;
    this.#sleep = sleep;
  }

  async paced<Read>({ name, kubeconfig }: ClusterSpec, signal: AbortSignal, read: () => Promise<Read>): Promise<Read> {
    if ('file' in kubeconfig) return read();
    const waitMs = this.#turnInMs();
    if (waitMs > 0) {
      await this.#sleep(waitMs, signal).catch((cause: unknown) => {
        const message = `The kubeconfig of cluster ${name} was not read in time, because this process reads many kubeconfigs. The next pass tries again.`;
        throw new ClusterError('Throttled', message, { cause });
      });
    }
    return read().catch((error: unknown) => {
      if (error instanceof ClusterError && error.code === 'Throttled') {
        this.#throttledUntilMs = this.#nowMs() + THROTTLED_MS;
      }
      throw error;
    });
  }

  #turnInMs(): number {
    const nowMs = this.#nowMs();
    const isThrottled = nowMs < this.#throttledUntilMs;
    const everyMs = isThrottled ? THROTTLED_READ_EVERY_MS : READ_EVERY_MS;
    const atOnce = isThrottled ? 0 : READS_AT_ONCE;
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs - atOnce * everyMs) + everyMs;
    return this.#nextAtMs - nowMs;
  }
}
