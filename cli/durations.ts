import { InvalidArgumentError } from 'commander';

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^(\d+(?:\.\d+)?)([smhd])/;
const LONGEST_MS = 3650 * UNIT_MS.d;

/**
 * Milliseconds of `90s`, `10m`, `1h30m`, `2d`.
 * @throws InvalidArgumentError of commander, whose message is shown beside the option.
 */
export function parseDuration(text: string): number {
  let rest = text.trim();
  let ms = 0;
  do {
    const [part, count, unit] = DURATION.exec(rest) ?? [];
    if (part === undefined) throw new InvalidArgumentError('A duration is like 90s, 10m, 1h30m or 2d.');
    ms += Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
    rest = rest.slice(part.length);
  } while (rest !== '');
  if (ms > 0 && ms <= LONGEST_MS) return Math.round(ms);
  throw new InvalidArgumentError('A duration is more than 0 and at most ten years.');
}
