import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Finding } from '../../lib/cluster/finding.ts';
import { TableError } from '../../lib/table/errors.ts';

/** What one observing pass came to. */
export interface Observed {
  readonly loop: Loop;
  readonly findings: readonly Finding[];
  /** What it would have written, each once. */
  readonly wouldWrite: readonly string[];
  readonly errors: readonly unknown[];
  /** The API server was not reached by a loop before, and was not asked again. */
  readonly skipped: boolean;
}

/** With these the next loop would fare no better. */
const NO_WAY_IN: ReadonlySet<string> = new Set([
  'BadKubeconfig',
  'DeadlineExceeded',
  'TlsFailure',
  'Unauthorized',
  'Unavailable',
]);

export function isNoWayIn(error: unknown): boolean {
  if (error instanceof TableError) return false;
  return error instanceof Error && 'code' in error && NO_WAY_IN.has(String(error.code));
}
