import * as z from 'zod/mini';
import type { Loop } from '../cluster/cluster-spec.ts';
import { SCHEDULE_SECONDS } from '../cluster/schedules.ts';
import { clusterName, eventFaults } from './event-faults.ts';

/** One tick of a loop for some of its clusters, as it waits in the loop's queue. */
export interface TickMessage {
  readonly loop: Loop;
  readonly dueAtMs: number;
  readonly clusters: readonly string[];
}

/** What a received message turns out to be. */
export type ReceivedTick =
  | { readonly outcome: 'due'; readonly clusters: readonly string[]; readonly dueAtMs: number }
  /** Later than an interval: the next tick has come already. */
  | { readonly outcome: 'late'; readonly lateMs: number; readonly clusters: readonly string[] }
  | { readonly outcome: 'unreadable'; readonly reason: string };

const SCHEMA = 1;

const tick = z.looseObject({
  schema: z.literal(SCHEMA, `is not ${SCHEMA}, the one that this version reads`),
  loop: z.string(),
  dueAtMs: z.number(),
  clusters: z.array(clusterName).check(z.minLength(1, 'names no cluster')),
});

export function tickBody({ loop, dueAtMs, clusters }: TickMessage): string {
  return JSON.stringify({ schema: SCHEMA, loop, dueAtMs, clusters });
}

/** Judges the body of a message that `loop` received. */
export function receiveTick(body: string, loop: Loop, nowMs: number): ReceivedTick {
  const parsed = tick.safeParse(jsonOf(body));
  if (!parsed.success) return { outcome: 'unreadable', reason: `It is no tick: ${eventFaults(parsed.error)}` };
  const { dueAtMs, clusters } = parsed.data;
  if (parsed.data.loop !== loop) {
    return { outcome: 'unreadable', reason: `It is a tick of the loop ${parsed.data.loop}, and this is ${loop}` };
  }
  const lateMs = nowMs - dueAtMs;
  if (lateMs > SCHEDULE_SECONDS[loop] * 1000) return { outcome: 'late', lateMs, clusters };
  return { outcome: 'due', clusters, dueAtMs };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
