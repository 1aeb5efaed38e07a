import { MOST_SKEW_MS } from '../table/server-clock.ts';
import { type DoctorLine, fail, ok } from './line.ts';

/** @param skewMs how far this host's clock is ahead of the table's, as far as the replies so far prove. */
export function lookAtClock(skewMs: number): readonly DoctorLine[] {
  const apart = `${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the table's`;
  if (Math.abs(skewMs) <= MOST_SKEW_MS) return [ok('clock', "agrees with the table's")];
  const fix =
    'Set the clock of this host with chronyd or timedatectl: it decides when leases, holds and withdrawals end';
  return [fail('clock', `is ${apart} or more`, fix)];
}
