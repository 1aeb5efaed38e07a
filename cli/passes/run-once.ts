import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { type EndedPass, recordPass } from '../../lib/dispatch/record-pass.ts';
import { runPass } from '../../lib/dispatch/run-pass.ts';
import { clusterIpRebuild, clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { kubernetesService } from '../../lib/loops/kubernetes-service.ts';
import { nodePortRebuild, nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import type { LoopDefinition } from '../../lib/loops/pass.ts';
import { systemNamespaces } from '../../lib/loops/system-namespaces.ts';
import { writesOf } from '../../lib/loops/writes.ts';
import { nextStrikeAtMs } from '../../lib/repair/leaks.ts';
import { PASS_BUDGET_MS } from '../../lib/runtime/budgets.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { RegisteredCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';

export interface RunOnceRequest {
  readonly cluster: RegisteredCluster;
  readonly loop: LoopDefinition;
  /** Writes nothing: not to the cluster, and not to the table. */
  readonly dryRun: boolean;
}

export interface RanOnce {
  readonly pass: EndedPass;
  /** No strike is counted before: one was counted less than two thirds of an interval ago. */
  readonly nextStrikeAtMs?: number;
}

const LOOP_DEFINITIONS: Readonly<Record<Loop, LoopDefinition>> = {
  'system-namespaces': systemNamespaces,
  'kubernetes-service': kubernetesService,
  'cluster-ip-repair': clusterIpRepair,
  'node-port-repair': nodePortRepair,
};

/** Replaces a corrupt snapshot. `undefined` for a loop that keeps none. */
export function rebuildOf(loop: Loop): LoopDefinition | undefined {
  if (loop === 'cluster-ip-repair') return clusterIpRebuild;
  return loop === 'node-port-repair' ? nodePortRebuild : undefined;
}

export function definitionOf(loop: Loop): LoopDefinition {
  return LOOP_DEFINITIONS[loop];
}

/** Where a loop keeps its ranges. */
function rangeKeysOf(loop: Loop): readonly RangeKey[] {
  if (loop === 'cluster-ip-repair') return [RANGE_KEYS.primary, RANGE_KEYS.secondary];
  return loop === 'node-port-repair' ? [RANGE_KEYS.nodePorts] : [];
}

/**
 * Runs one pass of a loop as its function would run it now: with its record, its events, and the rights of the stack that
 * owns the cluster. A pass without a report is not recorded: its failure may be one of the connection from here only.
 */
export async function runOnce(environment: Environment, request: RunOnceRequest): Promise<RanOnce> {
  const { cluster, loop, dryRun } = request;
  const { spec } = cluster;
  const { signal, cancel } = environment.startDeadline(PASS_BUDGET_MS[loop.id]);
  try {
    const table = environment.table(signal);
    const startedAtMs = environment.nowMs();
    const last = await readRunRecord(table, spec.name, loop.id);
    const nextStrikeAtMs = await nextStrike(table, cluster, loop, startedAtMs);
    const { log } = environment.telemetry({ loop: loop.id });
    const ran = await runPass(environment, {
      loop,
      cluster,
      previous: last?.record,
      startedAtMs,
      signal,
      warn: (text) => log('warn', text, { cluster: spec.name }),
      writes: dryRun ? 'none' : writesOf(spec.mode),
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
  nowMs: number,
): Promise<number | undefined> {
  const intervalMs = spec.intervalSeconds[id] * 1000;
  const reads = await Promise.all(rangeKeysOf(id).map((key) => readRange(table, spec.name, key).catch(unlessCorrupt)));
  const next = reads.flatMap((read) => {
    const atMs = read && nextStrikeAtMs(read.stored.strikes, { nowMs, intervalMs });
    return atMs === undefined || atMs <= nowMs ? [] : atMs;
  });
  return next.length === 0 ? undefined : Math.max(...next);
}

/** The pass itself reports the corrupt item. */
function unlessCorrupt(error: unknown): undefined {
  if (!(error instanceof TableError) || error.code !== 'Corrupt') throw error;
}
