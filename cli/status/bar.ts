import type { RangeStatus } from '../../lib/status/cluster-status.ts';

const CELLS = 10;
/** Eighths of a cell. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** `█████▍     54%`: how full something is. What is not empty shows, and what is not full is not drawn as if it were. */
export function bar(percent: number): string {
  const eighths = Math.round((Math.min(Math.max(percent, 0), 100) / 100) * CELLS * 8);
  const shown = percent <= 0 ? 0 : percent >= 100 ? CELLS * 8 : Math.min(Math.max(eighths, 1), CELLS * 8 - 1);
  const drawn = '█'.repeat(Math.floor(shown / 8)) + PARTS[shown % 8];
  const text = percent > 0 && percent < 1 ? '<1' : String(Math.floor(percent));
  return `${drawn.padEnd(CELLS)} ${text.padStart(3)}%`;
}

/** Of many, a few are less than the tenth of a per cent that the figure is rounded to. */
export function shownPercent({ usedPercent, used, capacity }: RangeStatus): number {
  return usedPercent === 0 && used > 0 ? (100 * used) / capacity : usedPercent;
}
