import { CLUSTERS } from '../lib/table/clusters.ts';
import type { KeyValueTable } from '../lib/table/key-value-table.ts';
import { MOST_SKEW_MS, type ServerClock } from '../lib/table/server-clock.ts';
import { configurationError } from './errors.ts';

/** Reads an item that need not exist: any reply of the table carries its time. */
export async function measureClock(table: KeyValueTable): Promise<void> {
  await table.get(CLUSTERS, '*');
}

/** `undefined`: this host's clock agrees with the table's well enough. */
export function skewWords(clock: ServerClock): string | undefined {
  const aheadMs = clock.skewMs();
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return undefined;
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  return `The clock of this host is ${seconds} s or more ${aheadMs > 0 ? 'ahead of' : 'behind'} the table's`;
}

/** @throws CliError by a clock that is not to be worked with, corrected or not. */
export function refuseSkew(clock: ServerClock): void {
  const words = skewWords(clock);
  if (words === undefined) return;
  throw configurationError(
    `${words}, and at most ${MOST_SKEW_MS / 1000} s is accepted: nothing was written. Set the clock with chronyd or timedatectl, and run the command again.`,
  );
}
