import type { Finding } from '../cluster/finding.ts';
import type { RangeDecision } from '../range/merge.ts';
import { auditRange } from '../repair/audit.ts';
import { RepairError } from '../repair/claims.ts';
import { type Comparison, compareRange } from '../repair/compare-range.ts';
import type { PassContext } from './pass.ts';
import type { GatheredRange, RangeAtStart, RepairWorld } from './repair-gather.ts';
import { type RepairKind, reworded } from './repair-kind.ts';

export interface Decision {
  readonly start: RangeAtStart;
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<string, number>>;
  readonly errors?: readonly Error[];
  readonly needsFreshList?: boolean;
  readonly save?: Save;
}

export interface Save {
  readonly next: RangeDecision['next'];
  /** The decision, to merge it onto a range that another writer changed. Absent for a usage bitmap, which is never merged. */
  readonly decided?: RangeDecision;
  readonly change: string;
}

type Gathered = Extract<RepairWorld, { outcome: 'gathered' }>;

/**
 * Decides about all ranges. If a decision frees items or opens a range, then checks that the kubeconfig still leads to
 * the control plane whose Services were listed. If the kubeconfig cannot be read, the pass frees and opens nothing.
 * @throws RepairError `ControlPlaneMoved`
 */
export async function decideFresh(
  kind: RepairKind,
  context: PassContext,
  world: Gathered,
): Promise<{ readonly decisions: readonly Decision[]; readonly unread: readonly Error[] }> {
  const { spec, controlPlane } = context;
  const { loop } = kind;
  const decisions = decide(kind, context, world, true);
  const needsFresh = decisions.some(({ needsFreshList }) => needsFreshList) || mayHaveClosed(loop, context);
  if (!needsFresh) return { decisions, unread: [] };
  try {
    if (await controlPlane.confirm(spec.intervalSeconds[loop] * 1000)) return { decisions, unread: [] };
  } catch (error) {
    const unread = [reworded('nothing was freed, because the kubeconfig cannot be read again', error)];
    return { decisions: decide(kind, context, world, false).map(withoutOpening), unread };
  }
  throw new RepairError(
    'ControlPlaneMoved',
    `the kubeconfig of cluster ${spec.name} now leads to another API server or has another CA than the one whose Services were listed: nothing was saved, and the next pass lists those of the new one`,
  );
}

/**
 * Returns whether allocation from the table is closed, or might close before the next pass. Allocation closes after three
 * intervals without a successful repair.
 */
function mayHaveClosed(loop: RepairKind['loop'], { spec, nowMs, previous }: PassContext): boolean {
  if (spec.allocator !== 'table') return false;
  const lastSuccessAtMs = previous?.lastSuccessAtMs;
  return lastSuccessAtMs === undefined || nowMs() - lastSuccessAtMs > 2 * spec.intervalSeconds[loop] * 1000;
}

function withoutOpening({ save, ...decision }: Decision): Decision {
  return { ...decision, ...(save !== undefined && !decision.needsFreshList && { save }) };
}

function decide(
  kind: RepairKind,
  context: PassContext,
  { ranges, startedAtMs }: Gathered,
  mayFree: boolean,
): readonly Decision[] {
  const { loop, words } = kind;
  const { passId, spec, rangesGeneration, previous, controlPlane } = context;
  const pass = {
    passId,
    nowMs: startedAtMs,
    intervalMs: spec.intervalSeconds[loop] * 1000,
    controlPlane: controlPlane.id,
    // Strikes from before a pass in `observe` are outdated.
    fromZero: previous?.observed === true,
    mayFree,
  };
  return ranges.map((range) =>
    range.allocator === 'table'
      ? recordDecision(range.start, compareRange(range.claimed, words, pass, rangesGeneration))
      : auditDecision(kind, range, rangesGeneration),
  );
}

function recordDecision(start: RangeAtStart, comparison: Comparison): Decision {
  const { findings, counts, changed, needsFreshList } = comparison;
  if (!changed) return { start, findings, counts };
  const change = `${start.key}: ${summary(comparison)}`;
  return { start, findings, counts, needsFreshList, save: { next: comparison.next, decided: comparison, change } };
}

function auditDecision(
  { words, errors }: RepairKind,
  { start, claimed }: Extract<GatheredRange, { allocator: 'apiserver' }>,
  generation: number,
): Decision {
  const stored = start.state === 'read' ? start.stored : undefined;
  const { findings, counts, next } = auditRange(claimed, words, stored, generation);
  if (start.state === 'corrupt') {
    const finding: Finding = { type: 'corruptSnapshot', message: start.error.message };
    return { start, findings: [...findings, finding], counts, errors: [reworded(errors.cannotRead, start.error)] };
  }
  if (next === undefined) return { start, findings, counts };
  const change = `${start.key}: ${counts.allocated} claimed in ${next.range}`;
  return { start, findings, counts, save: { next, change } };
}

function summary({ next, counts }: Comparison): string {
  const leaks = counts.leaks > 0 ? `, ${counts.leaks} freed as leaked` : '';
  const doubtful = counts.mayHaveLeaked > 0 ? `, ${counts.mayHaveLeaked} without a Service` : '';
  const held = counts.held > 0 ? `, ${counts.held} held` : '';
  const over = counts.holdsEnded > 0 ? `, ${counts.holdsEnded} freed after their hold` : '';
  return `${counts.allocated} of ${counts.capacity} taken in ${next.range}${held}${over}${leaks}${doubtful}`;
}
