import type { PassContext, PassReport } from './pass.ts';
import { auditApiserver } from './repair-audit.ts';
import type { RepairJob } from './repair-job.ts';
import { readRanges } from './repair-read.ts';
import { replacingCorrupt } from './repair-rebuild.ts';
import { repairTable } from './repair-table.ts';

export interface RepairPassOptions {
  /** Replaces corrupt snapshots by what the Services prove. Default: they are left as they are. */
  readonly rebuild?: boolean;
}

/**
 * One pass of a repair loop: ranges first, Services second, then decide and save
 * (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`). Services listed after the ranges
 * can only be more than what was recorded: whatever is allocated in between, the save notices.
 * @throws NotCorruptError when there is nothing to rebuild
 */
export async function repairPass<Item>(
  job: RepairJob<Item>,
  context: PassContext,
  { rebuild = false }: RepairPassOptions = {},
): Promise<PassReport> {
  const startedAtMs = context.nowMs();
  const read = await readRanges(job, context);
  const ranges = rebuild ? replacingCorrupt(job, read) : read;
  if (context.spec.allocator === 'apiserver') return auditApiserver(job, context, ranges);
  return repairTable(job, context, ranges, startedAtMs);
}
