import type { Loop } from '../cluster/cluster-spec.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { receiveTick } from './tick-message.ts';

/** Of the messages that a loop received, the ticks that are due. The others are told, counted and done with. */
export function receivedTicks(
  loop: Loop,
  bodies: readonly string[],
  nowMs: number,
  telemetry: Telemetry,
): { readonly names: readonly string[]; readonly dueAtMs?: number } {
  const names = new Set<string>();
  const dueAtMs: number[] = [];
  for (const body of bodies) {
    const received = receiveTick(body, loop, nowMs);
    switch (received.outcome) {
      case 'due':
        for (const name of received.clusters) names.add(name);
        dueAtMs.push(received.dueAtMs);
        break;
      case 'late':
        telemetry.count('lateTicks', 1);
        telemetry.log('warn', 'tick dropped', { lateMs: received.lateMs, clusters: received.clusters });
        break;
      case 'unreadable':
        telemetry.count('unreadableTicks', 1);
        telemetry.log('error', 'message dropped', { errors: [received.reason] });
    }
  }
  return { names: [...names], ...(dueAtMs.length > 0 && { dueAtMs: Math.min(...dueAtMs) }) };
}
