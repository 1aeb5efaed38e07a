import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { mergeOntoNewest, type RangeDecision } from '../range/merge.ts';
import { auditRange } from '../repair/audit.ts';
import { RepairError } from '../repair/claims.ts';
import { type Comparison, compareRange } from '../repair/compare-range.ts';
import { figureOf } from '../spec/spec-ranges.ts';
import { changesNothing, guaranteedUpdate } from '../table/guaranteed-update.ts';
import { TableError } from '../table/key-value-table.ts';
import { decodeRange, rangeContent, saveRange } from '../table/ranges.ts';
import type { PassContext, PassReport } from './pass.ts';
import { gatherRanges, type RangeAtStart, type RepairKind, type RepairWorld, reworded } from './repair-gather.ts';

/*
 * The repair of cluster IPs and of node ports (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`).
 * A pass
 *
 *   1. reads the ranges, and lists the Services;
 *   2. decides for each range what to record, to free and to report;
 *   3. reads the kubeconfig again, if it frees anything or opens a range;
 *   4. saves the ranges.
 *
 * It handles these cases:
 *
 *   - The address or port of a Service is not recorded: the pass records it (`repair`).
 *   - An address or port belongs to another Service, is out of range or invalid, or has a family without a range: the pass
 *     reports it (`duplicate`, `outOfRange`, `invalid`) and does not record it.
 *   - An address is outside the ranges, but in a ServiceCIDR of the cluster: the pass only counts it (`outside`).
 *   - A recorded item has no Service: the third strike frees it (`mayHaveLeaked`, `leak`; lib/repair/leaks.ts).
 *   - An item is held: it stays taken until the hold ends or a Service claims it (`heldByAnother`; lib/repair/compare-range.ts).
 *   - A range has no free item: the pass reports it (`nothingFree`).
 *   - An allocator is full or fails while claims are entered: the pass saves nothing (`full`, `unknown`).
 *   - The spec changed a range: the pass moves records, strikes and holds to the new range by item.
 *   - A stored range does not parse: the pass leaves it unchanged (`corruptSnapshot`).
 *   - Another writer changed a range while the Services were listed: the pass merges its decision (lib/range/merge.ts).
 *   - A range was saved for a newer spec: the pass writes nothing.
 *
 * If the cluster's own API servers allocate, the pass does not free or record items. It only audits the claims of Services,
 * and saves a usage bitmap for range maps (lib/repair/audit.ts).
 */

/** Runs one pass of a repair loop. Calls `visit` with every listed Service. */
export async function repairPass(
  kind: RepairKind,
  context: PassContext,
  visit: (service: ServiceClaim) => void = () => undefined,
): Promise<PassReport> {
  const world = await gatherRanges(kind, context, visit);
  if ('errors' in world) return world;
  const { findings, unlisted, counts } = world;
  const { decisions, unread } = await decideFresh(kind, context, world);
  const { changes, errors } = await applyAll(kind, context, decisions);
  return {
    changes,
    errors: [...decisions.flatMap((decision) => decision.errors ?? []), ...unread, ...errors],
    unlisted,
    findings: [...findings, ...decisions.flatMap((decision) => decision.findings)],
    counts: { ...counts, ...figures(decisions) },
  };
}

interface Decision {
  readonly start: RangeAtStart;
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<string, number>>;
  readonly errors?: readonly Error[];
  readonly needsFreshList?: boolean;
  readonly save?: Save;
}

interface Save {
  readonly next: RangeDecision['next'];
  /** The decision, which is merged if another writer changed the range. Absent for a usage bitmap, which is never merged. */
  readonly decided?: RangeDecision;
  readonly change: string;
}

/**
 * Decides about all ranges. Before items are freed or allocation opens, checks that the kubeconfig leads to the control plane
 * whose Services were listed. If the kubeconfig cannot be read, frees and opens nothing. @throws RepairError `ControlPlaneMoved`
 */
async function decideFresh(
  kind: RepairKind,
  context: PassContext,
  world: RepairWorld,
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

/** Returns whether allocation, which closes after three intervals without a success, is closed or closes before the next pass. */
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
  { ranges, startedAtMs }: RepairWorld,
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
  return ranges.map(({ start, claimed }) =>
    'rebuilt' in claimed
      ? recordDecision(start, compareRange(claimed, words, pass, rangesGeneration))
      : auditDecision(kind, start, auditRange(claimed, words, start.stored, rangesGeneration)),
  );
}

function recordDecision(start: RangeAtStart, comparison: Comparison): Decision {
  const { findings, counts, changed, needsFreshList } = comparison;
  if (!changed) return { start, findings, counts };
  const change = `${start.key}: ${summary(comparison)}`;
  return { start, findings, counts, needsFreshList, save: { next: comparison.next, decided: comparison, change } };
}

function auditDecision(
  { errors: { cannotRead } }: RepairKind,
  start: RangeAtStart,
  { findings, counts, next }: ReturnType<typeof auditRange>,
): Decision {
  const { key, corrupt } = start;
  if (corrupt !== undefined) {
    const finding: Finding = { type: 'corruptSnapshot', message: corrupt.message };
    return { start, findings: [...findings, finding], counts, errors: [reworded(cannotRead, corrupt)] };
  }
  const change = `${key}: ${counts.allocated} claimed in ${next?.range}`;
  return { start, findings, counts, ...(next && { save: { next, change } }) };
}

function summary({ next, counts }: Comparison): string {
  const leaks = counts.leaks > 0 ? `, ${counts.leaks} freed as leaked` : '';
  const doubtful = counts.mayHaveLeaked > 0 ? `, ${counts.mayHaveLeaked} without a Service` : '';
  const held = counts.held > 0 ? `, ${counts.held} held` : '';
  const over = counts.holdsEnded > 0 ? `, ${counts.holdsEnded} freed after their hold` : '';
  return `${counts.allocated} of ${counts.capacity} taken in ${next.range}${held}${over}${leaks}${doubtful}`;
}

async function applyAll(
  { errors }: RepairKind,
  context: PassContext,
  decisions: readonly Decision[],
): Promise<Pick<PassReport, 'changes' | 'errors'>> {
  const changes: string[] = [];
  for (const { start, save } of decisions) {
    try {
      const change = save && (await apply(context, start, save));
      if (change !== undefined) changes.push(change);
    } catch (error) {
      return { changes, errors: [reworded(errors.cannotSave, error)] };
    }
  }
  return { changes, errors: [] };
}

/**
 * Saves the decision about a range. Merges it into a range that has changed. Returns the change; `undefined` without a write.
 * @throws TableError `Contended` if the outcome is unclear, other writers won, or the range was removed; RepairError `OlderSpec`
 */
async function apply({ table, spec }: PassContext, start: RangeAtStart, save: Save): Promise<string | undefined> {
  const { key } = start;
  const { next, decided } = save;
  const saved = await saveRange(table, spec.name, key, next, start.item);
  if (saved.outcome === 'won') return saved.withheld ? undefined : `saved ${save.change}`;
  if (decided === undefined) return undefined;
  if (saved.outcome === 'unclear') {
    throw contended(
      `the reply to a save of ${key} was lost, and another writer has changed it since: whether it was saved is unknown`,
    );
  }
  type Outcome = 'refused' | 'removed' | 'unchanged' | 'merged';
  const outcome = await guaranteedUpdate<Outcome>(table, spec.name, key, (newest) => {
    if (newest === undefined) return { keep: 'removed' };
    const merged = mergeOntoNewest(decodeRange(newest), start.stored, decided);
    if (merged === undefined) return { keep: 'refused' };
    const write = rangeContent(merged);
    return changesNothing(write, newest) ? { keep: 'unchanged' } : { write, result: 'merged', withheld: 'unchanged' };
  });
  if (outcome === 'merged') return `merged ${save.change}`;
  if (outcome === 'unchanged') return undefined;
  if (outcome === 'removed') throw contended(`${key} was removed while the Services were listed`);
  throw new RepairError(
    'OlderSpec',
    `${key} was saved for another range or allocator, or under a newer spec, while the Services were listed; nothing was written, and the next pass reads the spec again`,
  );
}

function contended(what: string): TableError {
  return new TableError('Contended', `${what}; the next pass reads it again`);
}

function figures(decisions: readonly Decision[]): Record<string, number> {
  const named = decisions.flatMap(({ start: { key }, counts }) =>
    Object.entries(counts).map(([name, figure]) => [figureOf(key, name), figure] as const),
  );
  return Object.fromEntries(named);
}
