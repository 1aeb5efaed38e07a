import { isRefused, type Refusal } from '../allocator/refusal.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { emptyRange } from '../range/stored-range.ts';
import { type AuditedRange, startAudit } from '../repair/audit.ts';
import { type EnterClaims, FindingList, RepairError } from '../repair/claims.ts';
import { type Rebuild, recordedRange, startRebuild } from '../repair/compare-range.ts';
import { type RangeKey, rangesOf } from '../spec/spec-ranges.ts';
import { TableError } from '../table/key-value-table.ts';
import { type ReadRange, readRange } from '../table/ranges.ts';
import type { PassContext, PassReport } from './pass.ts';
import { type RepairKind, reworded } from './repair-kind.ts';

/** A range as it was read before the Services were listed. */
export type RangeAtStart = { readonly key: RangeKey; readonly configured: string } & (
  | { readonly state: 'unsaved' }
  | ({ readonly state: 'read' } & ReadRange)
  /** The stored range does not parse and must not be overwritten. */
  | { readonly state: 'corrupt'; readonly error: TableError }
);

export type GatheredRange =
  | { readonly allocator: 'table'; readonly start: RangeAtStart; readonly claimed: Rebuild }
  | { readonly allocator: 'apiserver'; readonly start: RangeAtStart; readonly claimed: AuditedRange };

type Entered = Required<Pick<PassReport, 'findings' | 'unlisted' | 'counts'>>;

/** A pass that ends early, because a stored range does not parse, or the claims of a Service could not be entered. */
interface EndedEarly {
  readonly outcome: 'ended';
  readonly report: PassReport;
}

export type RepairWorld =
  | EndedEarly
  | ({
      readonly outcome: 'gathered';
      readonly startedAtMs: number;
      readonly ranges: readonly GatheredRange[];
    } & Entered);

/** Reads the ranges, lists the Services, and enters their claims. @throws errors with upstream's messages */
export async function gatherRanges(
  kind: RepairKind,
  context: PassContext,
  visit: (service: ServiceClaim) => void,
): Promise<RepairWorld> {
  const startedAtMs = context.nowMs();
  const ranges: GatheredRange[] = [];
  const read = await readRanges(kind, context);
  for (const start of read) {
    const range = context.spec.allocator === 'apiserver' ? openAudit(kind, start) : openRecord(kind, start);
    if ('outcome' in range) return range;
    ranges.push(range);
  }
  const enter = kind.enterClaims(ranges.map(({ claimed }) => claimed));
  const { services, found, error } = await enterServices(kind, context, enter, visit);
  const { listed, unlisted, outside } = found;
  const findings = await withoutNewRecords(kind, context, listed);
  const entered = { findings, unlisted, counts: { services, ...(outside > 0 && { outside }) } };
  return error === undefined
    ? { outcome: 'gathered', startedAtMs, ranges, ...entered }
    : { outcome: 'ended', report: { changes: [], ...entered, errors: [error] } };
}

/** Removes findings about items that the admission webhook allocated after the ranges were read. */
async function withoutNewRecords(
  kind: RepairKind,
  context: PassContext,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  if (!findings.some(({ type }) => type === 'repair')) return findings;
  // An error of this second read is ignored, because saving the ranges will report it.
  const newest = await readRanges(kind, context).catch(() => []);
  const recorded = newest.flatMap((now) => {
    if (now.state !== 'read' || now.stored.allocator !== 'table') return [];
    const range = recordedRange(now.key, now.configured, now.stored);
    return isRefused(range) ? [] : [range];
  });
  const isRecorded = (item: string) => recorded.some((range) => range.has(item));
  return findings.filter(({ type, item = '' }) => type !== 'repair' || !isRecorded(item));
}

async function readRanges(
  { loop, errors }: RepairKind,
  { spec, table, rangesGeneration }: PassContext,
): Promise<readonly RangeAtStart[]> {
  const ranges = rangesOf(spec).filter((range) => range.loop === loop);
  const read = await Promise.all(
    ranges.map(async ({ key, configured }): Promise<RangeAtStart> => {
      try {
        const read = await readRange(table, spec.name, key);
        return { key, configured, ...(read === undefined ? { state: 'unsaved' } : { state: 'read', ...read }) };
      } catch (error) {
        if (!(error instanceof TableError) || error.code !== 'Corrupt') throw reworded(errors.cannotRead, error);
        return { key, configured, state: 'corrupt', error };
      }
    }),
  );
  for (const range of read) refuseNewerSpec(range, rangesGeneration);
  return inOrderOfSpec(read);
}

/**
 * Returns the ranges with the records of their families. If the spec now lists the two families in the other order, exchanges
 * the two records, because otherwise holds and addresses without a Service would be lost.
 */
function inOrderOfSpec(read: readonly RangeAtStart[]): readonly RangeAtStart[] {
  const [one, other] = read;
  if (one?.state !== 'read' || other?.state !== 'read' || isOfFamily(one) || isOfFamily(other)) return read;
  return [
    { ...one, stored: other.stored },
    { ...other, stored: one.stored },
  ];
}

function isOfFamily({ configured, stored }: Extract<RangeAtStart, { state: 'read' }>): boolean {
  return configured.includes(':') === stored.range.includes(':');
}

function refuseNewerSpec(range: RangeAtStart, generation: number): void {
  if (range.state !== 'read' || range.stored.generation <= generation) return;
  throw new RepairError(
    'OlderSpec',
    `${range.key} was saved under generation ${range.stored.generation} of the cluster spec, but this pass has generation ${generation}: nothing was written, and the next pass reads the spec again`,
  );
}

function badRange({ errors }: RepairKind, configured: string, { message }: Refusal): RepairError {
  return new RepairError('BadRange', errors.cannotCreate(configured, message));
}

function openRecord(kind: RepairKind, start: RangeAtStart): GatheredRange | EndedEarly {
  const { errors } = kind;
  const { key, configured } = start;
  const ofSpec = emptyRange(key, configured);
  if (isRefused(ofSpec)) throw badRange(kind, configured, ofSpec);
  // A usage bitmap that an audit saved is not a record of allocations by the table.
  const stored = start.state === 'read' && start.stored.allocator === 'table' ? start.stored : undefined;
  const claimed = start.state === 'corrupt' ? start.error : startRebuild(key, configured, stored);
  if (claimed instanceof Error || isRefused(claimed)) {
    const advice = `${key} is left unchanged: restore its last good content, or remove it, and the next pass rebuilds it from the Services`;
    const message = `${errors.cannotRestore(configured, claimed.message)}; ${advice}`;
    const error = new RepairError('CorruptSnapshot', message, start.state === 'corrupt' ? { cause: start.error } : {});
    const findings: Finding[] = [{ type: 'corruptSnapshot', message }];
    return { outcome: 'ended', report: { changes: [], findings, counts: {}, errors: [error] } };
  }
  return { allocator: 'table', start, claimed };
}

function openAudit(kind: RepairKind, start: RangeAtStart): GatheredRange {
  const { key, configured } = start;
  const claimed = startAudit(key, configured);
  if (isRefused(claimed)) throw badRange(kind, configured, claimed);
  return { allocator: 'apiserver', start, claimed };
}

/** Enters each Service while the list arrives, so that all Services of a large cluster are never in memory together. */
async function enterServices(
  { errors, listed }: RepairKind,
  { kubernetes, spec }: PassContext,
  enter: EnterClaims,
  visit: (service: ServiceClaim) => void,
): Promise<{ readonly services: number; readonly found: FindingList; readonly error?: RepairError }> {
  const found = new FindingList();
  let services = 0;
  try {
    for await (const batch of kubernetes.services(listed[spec.allocator])) {
      for (const service of batch) {
        services += 1;
        visit(service);
        const error = enter(service, found);
        if (error !== undefined) return { services, found, error };
      }
    }
    return { services, found };
  } catch (error) {
    throw reworded(errors.cannotList, error);
  }
}
