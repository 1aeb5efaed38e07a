import { AllocatorError } from '../allocator/errors.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { ServiceSelection } from '../kubernetes/cluster-port.ts';
import { type AuditLedger, auditRange } from '../repair/audit.ts';
import type { RangeWords } from '../repair/claim-findings.ts';
import { type Comparison, compareRange, type Rebuild, recordedRange, startRebuild } from '../repair/compare-range.ts';
import type { JudgingPass } from '../repair/leaks.ts';
import { type Ledger, RepairError, type Walk } from '../repair/walk.ts';
import type { PassContext, PassReport } from './pass.ts';
import {
  type RangeAtStart,
  type RepairErrorWords,
  type RepairedRanges,
  readRanges,
  replaceCorrupt,
  reworded,
  saveOrMerge,
  saveUsageBitmap,
} from './repair-ranges.ts';

/*
 * The repair of cluster IPs and of node ports (`pkg/registry/core/service/{ipallocator,portallocator}/controller/repair.go`).
 * A pass reads the ranges, lists the Services, decides for each range, and saves. It handles
 *
 *   - a Service whose address or port is not recorded: it is recorded (`repair`);
 *   - an address or port that another Service has, that is out of range or invalid, or of a family without a range: it is
 *     reported (`duplicate`, `outOfRange`, `invalid`), and never recorded;
 *   - an address outside the ranges that a ServiceCIDR of the cluster contains: it is counted (`outside`), and not reported;
 *   - a record without a Service: the third strike frees it (`mayHaveLeaked`, `leak`; lib/repair/leaks.ts);
 *   - a hold: its item stays taken until the hold ends or a Service claims it (`heldByAnother`; lib/repair/holds.ts);
 *   - a range without a free item (`nothingFree`), and an allocator that reports this or fails during the walk: nothing is
 *     saved (`full`, `unknown`);
 *   - a range that the spec changed: records, strikes and holds move to it by item;
 *   - a stored range that does not parse: it is left unchanged (`corruptSnapshot`), or replaced when a person asks for that;
 *   - a range that was written while the Services were listed: the decision is merged onto it (lib/repair/merge.ts);
 *   - a range of a newer spec: nothing is written.
 *
 * Where the cluster's own API servers allocate, their record is out of reach: the pass audits what Services claim, and the
 * range that it saves is a usage bitmap for maps (lib/repair/audit.ts).
 */

/** What distinguishes the repair of cluster IPs from that of node ports. */
export interface RepairKind<Item> extends RepairedRanges<Item> {
  readonly words: RangeWords;
  readonly makeAuditLedger: (range: string) => AuditLedger<Item> | AllocatorError;
  /**
   * Services that a pass reads, by the side that allocates. Where it may free an item, the selection leaves out only what the
   * walk would skip: a Service that was stored past the API server's validation may have what its type does not.
   */
  readonly listed: Readonly<Record<ClusterSpec['allocator'], ServiceSelection>>;
  /** Ledgers are in the order of the spec's ranges. */
  readonly startWalk: (ledgers: readonly Ledger<Item>[]) => Walk;
}

/** One range during a pass: the ledger that the walk fills, and the decision once it is filled. */
interface OpenRange<Item> {
  readonly ledger: Ledger<Item>;
  readonly decide: (mayFree: boolean) => Decision;
}

interface Decision {
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<string, number>>;
  readonly errors?: readonly Error[];
  readonly needsFreshList?: boolean;
  /** Returns the change that was made. Absent: there is nothing to save. */
  readonly save?: () => Promise<string | undefined>;
}

/**
 * Runs one pass of a repair loop. The ranges are read before the Services: the save notices what is allocated in between.
 * @param rebuild replaces corrupt ranges by what the Services prove; otherwise they are left unchanged
 * @param visit is called with every Service
 * @throws NotCorruptError when there is nothing to rebuild
 */
export async function repairPass<Item>(
  kind: RepairKind<Item>,
  context: PassContext,
  rebuild = false,
  visit: (service: ServiceClaim) => void = () => undefined,
): Promise<PassReport> {
  const startedAtMs = context.nowMs();
  const read = await readRanges(kind, context);
  const ranges = rebuild ? replaceCorrupt(kind, read) : read;
  const open: OpenRange<Item>[] = [];
  for (const range of ranges) {
    const opened =
      context.spec.allocator === 'apiserver'
        ? openAudit(kind, context, range)
        : openRepair(kind, context, range, startedAtMs);
    if (opened instanceof RepairError) return corruptRange(opened, range);
    open.push(opened);
  }

  const walk = kind.startWalk(open.map(({ ledger }) => ledger));
  const aborted = await walkServices(kind, context, walk, visit);
  const { outside } = walk.findings;
  const counts = { services: walk.services, ...(outside > 0 && { outside }) };
  const { listed, unlisted } = walk.findings;
  if (aborted !== undefined) return { changes: [], findings: listed, unlisted, counts, errors: [aborted] };

  const { decisions, unread } = await decideFresh(kind, context, open);
  const { changes, errors } = await saveAll(kind, decisions);
  return {
    changes,
    errors: [...decisions.flatMap((decision) => decision.errors ?? []), ...unread, ...errors],
    unlisted,
    findings: [...listed, ...decisions.flatMap(({ findings }) => findings)],
    counts: { ...counts, ...figures(decisions.map((decision) => decision.counts)) },
  };
}

/** Opens a range that the table allocates. A `RepairError`: what is stored of it does not parse. */
function openRepair<Item>(
  { loop, makeRange, words, errors }: RepairKind<Item>,
  { passId, spec, table, rangesGeneration, previousMode, controlPlane: { id: controlPlane } }: PassContext,
  range: RangeAtStart,
  nowMs: number,
): OpenRange<Item> | RepairError {
  const { key, configured, corrupt, read, replaces } = range;
  // The usage bitmap of an audit records no allocation of the table.
  const stored = read?.stored.allocator === 'table' ? read.stored : undefined;
  const recorded = corrupt ?? recordedRange(makeRange, configured, stored);
  if (recorded instanceof Error) {
    return new RepairError('CorruptSnapshot', errors.cannotRestore(configured, recorded.message), { cause: recorded });
  }
  const rebuilt = usable(makeRange(configured), errors, configured);
  const rebuild = startRebuild(stored, recorded, rebuilt);
  const fromZero = previousMode === 'observe';
  const intervalMs = spec.intervalSeconds[loop] * 1000;
  const decide = (mayFree: boolean): Decision => {
    const pass: JudgingPass = { passId, nowMs, intervalMs, controlPlane, fromZero, mayFree };
    const comparison = compareRange(rebuild, words, pass, rangesGeneration);
    const { findings, counts, changed, needsFreshList } = comparison;
    if (!changed) return { findings, counts };
    const change = `${key}: ${summary(comparison)}`;
    const save = async () => {
      const how = await saveOrMerge(table, spec.name, range, comparison);
      if (how === 'withheld') return undefined;
      return `${replaces === undefined ? how : 'rebuilt'} ${change}`;
    };
    return { findings, counts, needsFreshList, save };
  };
  return { ledger: replaces === undefined ? rebuild : withoutRecord(rebuild), decide };
}

/** What a corrupt range recorded is unknown: a claim that is not in it is no finding. */
function withoutRecord<Item>({ spec, claim }: Rebuild<Item>): Ledger<Item> {
  return {
    spec,
    claim: (item, by) => {
      const result = claim(item, by);
      return result === 'notRecorded' ? 'recorded' : result;
    },
  };
}

/** Opens a range that the cluster's own API servers allocate. */
function openAudit<Item>(
  { makeAuditLedger, words, errors }: RepairKind<Item>,
  { spec, table, rangesGeneration }: PassContext,
  range: RangeAtStart,
): OpenRange<Item> {
  const { configured, corrupt, key } = range;
  const ledger = usable(makeAuditLedger(configured), errors, configured);
  const decide = (): Decision => {
    const { findings, counts, next } = auditRange(ledger, words, range.read?.stored, rangesGeneration);
    if (corrupt !== undefined) {
      const finding: Finding = { type: 'corruptSnapshot', message: corrupt.message };
      return { findings: [...findings, finding], counts, errors: [reworded(errors.cannotRead, corrupt)] };
    }
    if (next === undefined) return { findings, counts };
    const save = async () =>
      (await saveUsageBitmap(table, spec.name, range, next))
        ? `saved ${key}: ${counts.allocated} claimed in ${next.range}`
        : undefined;
    return { findings, counts, save };
  };
  return { ledger, decide };
}

function usable<Made>(made: Made | AllocatorError, errors: RepairErrorWords, configured: string): Made {
  if (!(made instanceof AllocatorError)) return made;
  throw new RepairError('BadRange', errors.cannotCreate(configured, made.message), { cause: made });
}

/**
 * Takes every Service through the walk while the list arrives, so that a large cluster is never in memory as a whole. A
 * list that breaks off proves nothing: the call throws, and what was entered must not be used.
 */
async function walkServices<Item>(
  { errors, listed }: RepairKind<Item>,
  { kubernetes, spec }: PassContext,
  walk: Walk,
  visit: (service: ServiceClaim) => void,
): Promise<RepairError | undefined> {
  try {
    for await (const service of kubernetes.services(listed[spec.allocator])) {
      visit(service);
      const aborted = walk.visit(service);
      if (aborted !== undefined) return aborted;
    }
    return undefined;
  } catch (error) {
    throw reworded(errors.cannotList, error);
  }
}

/**
 * Decides by Services that were listed with a kubeconfig of this interval, where the decision needs that. If the kubeconfig
 * cannot be read, the pass frees and opens nothing, and saves the rest.
 * @throws RepairError `ControlPlaneMoved`
 */
async function decideFresh<Item>(
  { loop }: RepairKind<Item>,
  context: PassContext,
  open: readonly OpenRange<Item>[],
): Promise<{ readonly decisions: readonly Decision[]; readonly unread: readonly Error[] }> {
  const { spec, controlPlane } = context;
  const decisions = open.map(({ decide }) => decide(true));
  const needsFresh = decisions.some(({ needsFreshList }) => needsFreshList) || mayHaveClosed(loop, context);
  if (!needsFresh) return { decisions, unread: [] };
  try {
    if (await controlPlane.confirm(spec.intervalSeconds[loop] * 1000)) return { decisions, unread: [] };
  } catch (error) {
    const unread = [reworded('nothing was freed, because the kubeconfig cannot be read again', error)];
    return { decisions: open.map(({ decide }) => withoutOpening(decide(false))), unread };
  }
  throw new RepairError(
    'ControlPlaneMoved',
    `the kubeconfig of cluster ${spec.name} now leads to another API server or has another CA than the one whose Services were listed: nothing was saved, and the next pass lists those of the new one`,
  );
}

/** Three intervals without a success close allocation, others may allocate from then on, and the next success opens it. */
function mayHaveClosed(loop: RepairKind<unknown>['loop'], { spec, nowMs, lastSuccessAtMs }: PassContext): boolean {
  if (spec.allocator !== 'table') return false;
  return lastSuccessAtMs === undefined || nowMs() - lastSuccessAtMs > 2 * spec.intervalSeconds[loop] * 1000;
}

function withoutOpening({ save, ...decision }: Decision): Decision {
  return { ...decision, ...(save !== undefined && !decision.needsFreshList && { save }) };
}

/** Saves range after range; the first that fails is the last that is tried. */
async function saveAll<Item>(
  { errors }: RepairKind<Item>,
  decisions: readonly Decision[],
): Promise<Pick<PassReport, 'changes' | 'errors'>> {
  const changes: string[] = [];
  for (const { save } of decisions) {
    try {
      const change = await save?.();
      if (change !== undefined) changes.push(change);
    } catch (error) {
      return { changes, errors: [reworded(errors.cannotSave, error)] };
    }
  }
  return { changes, errors: [] };
}

/** The report of a pass that ends because a range does not parse. */
function corruptRange({ code, message, cause }: RepairError, { key }: RangeAtStart): PassReport {
  const advice = `${key} is left unchanged: restore its last good content, or remove it, and the next pass rebuilds it from the Services`;
  const error = new RepairError(code, `${message}; ${advice}`, { cause });
  const finding: Finding = { type: 'corruptSnapshot', message: error.message };
  return { changes: [], findings: [finding], counts: {}, errors: [error] };
}

function summary({ next, counts }: Comparison): string {
  const leaks = counts.leaks > 0 ? `, ${counts.leaks} freed as leaked` : '';
  const doubtful = counts.mayHaveLeaked > 0 ? `, ${counts.mayHaveLeaked} without a Service` : '';
  const held = counts.held > 0 ? `, ${counts.held} held` : '';
  const over = counts.holdsEnded > 0 ? `, ${counts.holdsEnded} freed after their hold` : '';
  return `${counts.allocated} of ${counts.capacity} taken in ${next.range}${held}${over}${leaks}${doubtful}`;
}

/** Figures of the ranges for the run record: those of the first by their names, those of a second as `secondary...`. */
function figures([primary = {}, secondary = {}]: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const named = Object.entries(secondary).map(([name, figure]) => [
    `secondary${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    figure,
  ]);
  return { ...primary, ...Object.fromEntries(named) };
}
