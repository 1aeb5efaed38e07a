const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

/** Units, the largest first. An age below `fineBelow` is shown with the next smaller unit too. */
const UNITS = [
  { letter: 'y', ms: YEAR_MS, from: 2 * YEAR_MS, fineBelow: 8 * YEAR_MS },
  { letter: 'd', ms: DAY_MS, from: 2 * DAY_MS, fineBelow: 8 * DAY_MS },
  { letter: 'h', ms: HOUR_MS, from: 3 * HOUR_MS, fineBelow: 8 * HOUR_MS },
  { letter: 'm', ms: MINUTE_MS, from: 2 * MINUTE_MS, fineBelow: 10 * MINUTE_MS },
  { letter: 's', ms: SECOND_MS, from: 0, fineBelow: 0 },
] as const;

/** Returns an age as kubectl does, such as `3m20s`. Clocks differ, so a time less than two seconds ahead counts as now. */
export function formatAge(ms: number): string {
  if (ms <= -2 * SECOND_MS) return '<invalid>';
  const [unit, finer] = UNITS.slice(UNITS.findIndex(({ from }) => ms >= from));
  if (unit === undefined || ms < 0) return '0s';
  const whole = `${Math.floor(ms / unit.ms)}${unit.letter}`;
  const rest = finer === undefined ? 0 : Math.floor((ms % unit.ms) / finer.ms);
  return ms < unit.fineBelow && rest > 0 ? `${whole}${rest}${finer?.letter}` : whole;
}

/** Returns a duration, such as `412ms` or `1.2s`. A duration of two minutes or more has the format of an age. */
export function formatDuration(ms: number): string {
  if (ms < SECOND_MS) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms >= 2 * MINUTE_MS) return formatAge(ms);
  return ms < 10 * SECOND_MS ? `${Math.floor(ms / 100) / 10}s` : `${Math.floor(ms / SECOND_MS)}s`;
}

/** Returns a remaining time, rounded to the nearest unit, so that a new hold of an hour is not shown as 59 minutes. */
export function timeLeft(ms: number): string {
  const unitMs = ms < 10 * MINUTE_MS ? SECOND_MS : MINUTE_MS;
  return formatAge(Math.round(ms / unitMs) * unitMs);
}
