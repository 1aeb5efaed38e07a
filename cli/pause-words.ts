import type { Pause } from '../lib/table/clusters.ts';
import type { Cli } from './cli.ts';

export function pausedWords({ untilMs, reason, by }: Pause): string {
  return `paused until ${new Date(untilMs).toISOString()} by ${by}: ${reason}`;
}

/** The hold on all holds a cluster whatever is said of it alone: wherever one is shown, it is told. */
export function tellPauseOfAll({ output }: Cli, all: Pause | undefined, nowMs: number): void {
  if (all === undefined || all.untilMs <= nowMs) return;
  output.say(`All clusters are ${pausedWords(all)}. "kbctl resume --all" ends that.`);
}
