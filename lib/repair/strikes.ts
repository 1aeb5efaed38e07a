import { type LeakStrikes, NO_STRIKES } from '../cluster/stored-range.ts';

/** The pass that judges: strikes fall once a pass, and not faster than passes are due. */
export interface Turn {
  readonly passId: string;
  readonly nowMs: number;
  /** The loop's interval. */
  readonly intervalMs: number;
  /** Passes only observed since strikes were counted: they count from zero. */
  readonly fromZero: boolean;
}

/** The strikes that this pass goes on from. */
export function strikesAt({ fromZero, passId, nowMs, intervalMs }: Turn, stored: LeakStrikes): LeakStrikes {
  const { once, twice } = fromZero ? NO_STRIKES : stored;
  const { last } = stored;
  // Dated by a clock that was far ahead, it would stop all counting until then.
  const isFarAhead = last !== undefined && last.atMs - nowMs > intervalMs;
  return { once, twice, ...(last && { last: isFarAhead ? { atMs: nowMs, passId } : last }) };
}

/**
 * Whether this pass may count what it sees: it is not the pass that counted last, and two thirds of an interval have
 * gone by since. A pass that is run again, or early, must not bring an address nearer to being freed.
 */
export function mayStrike({ last }: LeakStrikes, { passId, nowMs, intervalMs }: Turn): boolean {
  return last === undefined || (last.passId !== passId && nowMs - last.atMs >= (intervalMs * 2) / 3);
}
