import type { EventSighting, FindingType } from '../cluster/finding.ts';
import type { TableValue } from './key-value-table.ts';

/** `runs/<loop>`: the last pass of a loop, and what the loop must remember until its next one. */
export interface RunRecord {
  readonly passId: string;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly outcome: 'succeeded' | 'failed';
  readonly mode: 'observe' | 'enforce';
  readonly counts: Readonly<Record<string, number>>;
  /** Capped list, for people. */
  readonly findings: readonly { readonly type: FindingType; readonly message: string }[];
  readonly error?: { readonly code: string; readonly message: string };
  readonly failuresInARow: number;
  readonly lastSuccessAtMs?: number;
  /** Sightings of each event, by event name: what repeats is a series (design: events). */
  readonly events: Readonly<Record<string, EventSighting>>;
  /** The loop's own. */
  readonly state?: TableValue;
}
