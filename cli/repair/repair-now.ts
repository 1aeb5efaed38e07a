import type { RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { type EndedPass, recordPass } from '../../lib/dispatch/record-pass.ts';
import { runPass } from '../../lib/dispatch/run-pass.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { mayStrike, strikesAt } from '../../lib/repair/strikes.ts';
import { PASS_BUDGET_MS } from '../../lib/runtime/budgets.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';

export interface RepairRequest {
  readonly cluster: RegisteredCluster;
  readonly loop: LoopDefinition;
  /** Where the loop keeps its ranges. */
  readonly keys: readonly RangeKey[];
  /** Writes nothing at all, nowhere. */
  readonly dryRun: boolean;
}

export interface Repaired {
  readonly pass: EndedPass;
  /** No strike falls before: one fell less than two thirds of an interval ago. */
  readonly nextStrikeAtMs?: number;
}

/**
 * One pass of a repair loop, as its function would run it now: with its record, its events, and the right of the stack that
 * owns the cluster. What did not come about at all is not recorded: the way from here says nothing about the functions' own.
 */
export async function repairNow(environment: Environment, request: RepairRequest): Promise<Repaired> {
  const { cluster, loop, dryRun, keys } = request;
  const { spec, owner } = cluster;
  const { signal, cancel } = environment.startDeadline(PASS_BUDGET_MS[loop.id]);
  try {
    const table = environment.table(signal);
    const startedAtMs = environment.nowMs();
    const last = await readRunRecord(table, spec.name, loop.id);
    const nextStrikeAtMs = await nextStrike(table, cluster, loop, keys, startedAtMs);
    const { log } = environment.telemetry({ loop: loop.id });
    const ran = await runPass(environment, {
      loop,
      cluster,
      previous: last?.record,
      startedAtMs,
      signal,
      warn: (text) => log('warn', text, { cluster: spec.name }),
      // As the passes of any other stack than the owner, which write nothing at all.
      ...(dryRun && { ownedBy: owner?.stack ?? '' }),
    });
    const recorded = !dryRun && ran.report !== undefined;
    const pass = recorded ? await recordPass(environment, loop.id, spec, ran, last, { always: true }) : ran;
    return { pass, ...(nextStrikeAtMs !== undefined && { nextStrikeAtMs }) };
  } finally {
    cancel();
  }
}

async function nextStrike(
  table: KeyValueTable,
  { spec }: RegisteredCluster,
  { id }: LoopDefinition,
  keys: readonly RangeKey[],
  nowMs: number,
): Promise<number | undefined> {
  const intervalMs = spec.intervalSeconds[id] * 1000;
  const turn = { passId: '', nowMs, intervalMs, fromZero: false };
  const reads = await Promise.all(keys.map((key) => readRange(table, spec.name, key).catch(unlessCorrupt)));
  const next = reads.flatMap((read) => {
    const strikes = read && strikesAt(turn, read.stored.strikes);
    if (strikes?.last === undefined || mayStrike(strikes, turn)) return [];
    return strikes.last.atMs + (intervalMs * 2) / 3;
  });
  return next.length === 0 ? undefined : Math.max(...next);
}

/** The pass itself says what is wrong with it. */
function unlessCorrupt(error: unknown): undefined {
  if (!(error instanceof TableError) || error.code !== 'Corrupt') throw error;
}
