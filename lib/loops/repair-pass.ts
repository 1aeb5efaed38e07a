import type { PassContext, PassReport } from './pass.ts';
import { auditApiserver } from './repair-audit.ts';
import type { RepairJob } from './repair-job.ts';
import { readRanges } from './repair-read.ts';
import { repairTable } from './repair-table.ts';

/**
 * One pass of a repair loop: ranges first, Services second, then decide and save
 * (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`). Services listed after the ranges
 * can only be more than what was recorded: whatever is allocated in between, the save notices.
 */
export async function repairPass<Item>(job: RepairJob<Item>, context: PassContext): Promise<PassReport> {
  const startedAtMs = context.nowMs();
  const ranges = await readRanges(job, context);
  if (context.spec.allocator === 'apiserver') return auditApiserver(job, context, ranges);
  return repairTable(job, context, ranges, startedAtMs);
}
