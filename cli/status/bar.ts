const CELLS = 10;
/** Eighths of a cell. */
const PARTS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** `█████▍     54%`: how full something is. What is not empty shows, and what is not full is not drawn as if it were. */
export function bar(percent: number): string {
  const eighths = Math.round((Math.min(Math.max(percent, 0), 100) / 100) * CELLS * 8);
  const shown = percent <= 0 ? 0 : percent >= 100 ? CELLS * 8 : Math.min(Math.max(eighths, 1), CELLS * 8 - 1);
  const drawn = '█'.repeat(Math.floor(shown / 8)) + PARTS[shown % 8];
  return `${drawn.padEnd(CELLS)} ${String(Math.floor(percent)).padStart(3)}%`;
}
