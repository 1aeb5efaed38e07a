import { setTimeout as sleep } from 'node:timers/promises';
import type { styleText } from 'node:util';
import type { ClusterSpec } from '../lib/cluster/cluster-spec.ts';
import type { Environment } from '../lib/runtime/environment.ts';

export interface ReadyCluster {
  readonly spec: ClusterSpec;
  readonly environment: Environment;
}

export interface ServedPage {
  readonly url?: string;
  /** The reason why it has no URL. */
  readonly problem?: string;
  close(): Promise<void>;
}

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string;

export const noColors: Paint = (_, text) => text;

export interface RunHooks {
  /** Called before the first pass. Its failure is reported, and stops nothing. */
  readonly onReady?: (running: ReadyCluster) => Promise<ServedPage>;
  readonly hints?: readonly string[];
  /** Writes a line, without its line break. It may contain unescaped text of a cluster. */
  readonly write: (line: string) => void;
  /** Default: without colors. */
  readonly paint?: Paint;
}

/** A page that hangs does not delay the end. */
const CLOSING_MS = 2_000;

export async function openPage({ onReady }: Pick<RunHooks, 'onReady'>, running: ReadyCluster): Promise<ServedPage> {
  if (onReady === undefined) return { close: async () => undefined };
  try {
    const served = await onReady(running);
    const close = async () => {
      const isClosed = new AbortController();
      const tooLate = sleep(CLOSING_MS, undefined, { signal: isClosed.signal }).catch(() => undefined);
      await Promise.race([served.close().catch(() => undefined), tooLate]);
      isClosed.abort();
    };
    return { ...served, close };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { problem: `none, because it cannot be served: ${why}`, close: async () => undefined };
  }
}
