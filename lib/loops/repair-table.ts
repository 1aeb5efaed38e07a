import { AllocatorError } from '../allocator/errors.ts';
import type { RangeAllocator } from '../allocator/range-allocator.ts';
import type { StoredRange } from '../cluster/stored-range.ts';
import { type Comparison, compareRange } from '../repair/compare.ts';
import { RepairError } from '../repair/errors.ts';
import { type Rebuild, recordedRange, startRebuild } from '../repair/rebuild.ts';
import type { Turn } from '../repair/strikes.ts';
import type { PassContext, PassReport } from './pass.ts';
import { figures, type RepairJob, reworded } from './repair-job.ts';
import { corruptSnapshot, type RangeAtStart } from './repair-read.ts';
import { saveOrMerge } from './repair-save.ts';
import { walkServices } from './repair-walk.ts';

/** A range with what was recorded of it. */
interface Recorded<Item> {
  readonly range: RangeAtStart;
  readonly stored: StoredRange | undefined;
  readonly recorded: RangeAllocator<Item>;
}

interface Decided {
  readonly range: RangeAtStart;
  readonly comparison: Comparison;
}

/**
 * Repairs ranges that are allocated through the table, so that what is stored is the record: Services that it does
 * not know are entered, and what it holds without a Service is freed at the third strike.
 */
export async function repairTable<Item>(
  job: RepairJob<Item>,
  context: PassContext,
  ranges: readonly RangeAtStart[],
  startedAtMs: number,
): Promise<PassReport> {
  const recorded: Recorded<Item>[] = [];
  for (const range of ranges) {
    const restored = restore(job, range);
    if (restored instanceof RepairError) return corruptSnapshot(restored, range);
    recorded.push(restored);
  }

  const entered = recorded.map(({ range, ...record }) => ({ range, rebuild: emptyRebuild(job, range, record) }));
  const walk = job.startWalk(entered.map(({ rebuild }) => rebuild));
  const aborted = await walkServices(context.kubernetes, job.words.cannotList, walk);
  const counts = { services: walk.services };
  const { listed, unlisted } = walk.findings;
  if (aborted !== undefined) return { changes: [], findings: listed, unlisted, counts, errors: [aborted] };

  const turn = turnOf(job, context, startedAtMs);
  const decided = entered.map(({ range, rebuild }) => ({
    range,
    comparison: compareRange(rebuild, job.words, turn, context.rangesGeneration),
  }));
  return {
    ...(await apply(job, context, decided)),
    unlisted,
    findings: [...listed, ...decided.flatMap(({ comparison }) => comparison.findings)],
    counts: { ...counts, ...figures(decided.map(({ comparison }) => comparison.counts)) },
  };
}

/** The allocator that what was read describes, or the error of a snapshot that describes none. */
function restore<Item>({ makeRange, words }: RepairJob<Item>, range: RangeAtStart): Recorded<Item> | RepairError {
  const { configured, corrupt, read } = range;
  // What another allocator's Services looked like is no record of ours.
  const stored = read?.stored.allocator === 'table' ? read.stored : undefined;
  const recorded = corrupt ?? recordedRange(makeRange, configured, stored);
  if (!(recorded instanceof Error)) return { range, stored, recorded };
  return new RepairError('CorruptSnapshot', words.cannotRestore(configured, recorded.message), { cause: recorded });
}

function emptyRebuild<Item>(
  { makeRange, words }: RepairJob<Item>,
  { configured, replaces }: RangeAtStart,
  { stored, recorded }: Omit<Recorded<Item>, 'range'>,
): Rebuild<Item> {
  const rebuilt = makeRange(configured);
  if (!(rebuilt instanceof AllocatorError)) {
    const rebuild = startRebuild(stored, recorded, rebuilt);
    return replaces === undefined ? rebuild : withoutRecord(rebuild);
  }
  throw new RepairError('BadRange', words.cannotCreate(configured, rebuilt.message), { cause: rebuilt });
}

/** Nobody can tell what a corrupt snapshot recorded: that a claim is not in it is no finding. */
function withoutRecord<Item>(rebuild: Rebuild<Item>): Rebuild<Item> {
  const claim: Rebuild<Item>['claim'] = (item, by) => {
    const result = rebuild.claim(item, by);
    return result === 'notRecorded' ? 'recorded' : result;
  };
  return { ...rebuild, claim };
}

function turnOf<Item>({ loop }: RepairJob<Item>, context: PassContext, nowMs: number): Turn {
  const { passId, spec, previousMode } = context;
  return { passId, nowMs, intervalMs: spec.intervalSeconds[loop] * 1000, fromZero: previousMode === 'observe' };
}

/** Saves range after range; the first that fails is the last that is tried. */
async function apply<Item>(
  { words }: RepairJob<Item>,
  { spec, table, wouldWrite }: PassContext,
  decided: readonly Decided[],
): Promise<Pick<PassReport, 'changes' | 'errors'>> {
  const changes: string[] = [];
  for (const { range, comparison } of decided) {
    if (!comparison.changed) continue;
    const change = `${range.key}: ${summary(comparison)}`;
    if (spec.mode === 'observe') {
      wouldWrite(`${range.replaces === undefined ? 'save' : 'rebuild'} ${change}`);
      continue;
    }
    try {
      const how = await saveOrMerge(table, { cluster: spec.name, ...range }, comparison);
      changes.push(`${range.replaces === undefined ? how : 'rebuilt'} ${change}`);
    } catch (error) {
      return { changes, errors: [reworded(words.cannotSave, error)] };
    }
  }
  return { changes, errors: [] };
}

function summary({ next, counts }: Comparison): string {
  const leaks = counts.leaks > 0 ? `, ${counts.leaks} freed as leaked` : '';
  const doubtful = counts.mayHaveLeaked > 0 ? `, ${counts.mayHaveLeaked} without a Service` : '';
  const held = counts.held > 0 ? `, ${counts.held} held` : '';
  const over = counts.holdsEnded > 0 ? `, ${counts.holdsEnded} freed after their hold` : '';
  return `${counts.allocated} of ${counts.capacity} taken in ${next.range}${held}${over}${leaks}${doubtful}`;
}
