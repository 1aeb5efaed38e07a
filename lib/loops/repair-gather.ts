import { isRefused } from '../allocator/refusal.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { ClusterError, type ServiceSelection } from '../kubernetes/cluster-port.ts';
import { emptyRange } from '../range/stored-range.ts';
import { type AuditedRange, startAudit } from '../repair/audit.ts';
import { type ClaimedRange, type EnterClaims, FindingList, type RangeWords, RepairError } from '../repair/claims.ts';
import { type Rebuild, recordedRange, startRebuild } from '../repair/compare-range.ts';
import type { ClusterSpec, Loop } from '../spec/cluster-spec.ts';
import { type RangeKey, rangesOf } from '../spec/spec-ranges.ts';
import { TableError } from '../table/key-value-table.ts';
import { type ReadRange, readRange } from '../table/ranges.ts';
import { CodedError } from '../util/values.ts';
import type { PassContext, PassReport } from './pass.ts';

/** The differences between the repairs of cluster IPs and of node ports. */
export interface RepairKind {
  readonly loop: Loop;
  readonly errors: RepairErrorWords;
  readonly words: RangeWords;
  /** The Services to list. A pass that can free items lists every Service that may claim an item, even an invalid Service. */
  readonly listed: Readonly<Record<ClusterSpec['allocator'], ServiceSelection>>;
  /** `ranges` are in the order of the spec. */
  readonly enterClaims: (ranges: readonly ClaimedRange[]) => EnterClaims;
}

/** Upstream's error messages. `cannotRead`, `cannotList` and `cannotSave` are only the beginnings of messages. */
export interface RepairErrorWords {
  readonly cannotRead: string;
  readonly cannotRestore: (range: string, why: string) => string;
  readonly cannotCreate: (range: string, why: string) => string;
  readonly cannotList: string;
  readonly cannotSave: string;
}

/** A range as it was read before the Services were listed. Only `key` and `configured` are present if no pass has saved it. */
export interface RangeAtStart extends Partial<ReadRange> {
  readonly key: RangeKey;
  readonly configured: string;
  /** The stored range does not parse and must not be overwritten. */
  readonly corrupt?: TableError;
}

export interface GatheredRange {
  readonly start: RangeAtStart;
  readonly claimed: Rebuild | AuditedRange;
}

type Entered = Required<Pick<PassReport, 'findings' | 'unlisted' | 'counts'>>;

export interface RepairWorld extends Entered {
  readonly startedAtMs: number;
  readonly ranges: readonly GatheredRange[];
}

/**
 * Reads the ranges, lists the Services, and enters their claims. If a stored range does not parse, or claims could not be
 * entered, the pass ends early, and its report is returned. @throws errors with upstream's messages
 */
export async function gatherRanges(
  kind: RepairKind,
  context: PassContext,
  visit: (service: ServiceClaim) => void,
): Promise<RepairWorld | PassReport> {
  const startedAtMs = context.nowMs();
  const ranges: GatheredRange[] = [];
  const read = await readRanges(kind, context);
  for (const start of read) {
    const claimed = openRange(kind, context.spec, start);
    if (claimed instanceof RepairError) {
      const findings: Finding[] = [{ type: 'corruptSnapshot', message: claimed.message }];
      return { changes: [], findings, counts: {}, errors: [claimed] };
    }
    ranges.push({ start, claimed });
  }
  const enter = kind.enterClaims(ranges.map(({ claimed }) => claimed));
  const { services, found, error } = await enterServices(kind, context, enter, visit);
  const { listed, unlisted, outside } = found;
  const findings = await withoutNewRecords(kind, context, listed);
  const entered = { findings, unlisted, counts: { services, ...(outside > 0 && { outside }) } };
  return error === undefined ? { startedAtMs, ranges, ...entered } : { changes: [], ...entered, errors: [error] };
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
    if (now.stored?.allocator !== 'table') return [];
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
        return { key, configured, ...(await readRange(table, spec.name, key)) };
      } catch (error) {
        if (!(error instanceof TableError) || error.code !== 'Corrupt') throw reworded(errors.cannotRead, error);
        return { key, configured, corrupt: error };
      }
    }),
  );
  for (const range of read) refuseNewerSpec(range, rangesGeneration);
  return inOrderOfSpec(read);
}

/** Exchanges the stored ranges if the spec has changed the order of the families: otherwise holds and records would be lost. */
function inOrderOfSpec(read: readonly RangeAtStart[]): readonly RangeAtStart[] {
  const [one, other] = read;
  if (one?.stored === undefined || other?.stored === undefined || isOfFamily(one) || isOfFamily(other)) return read;
  return [
    { ...one, stored: other.stored },
    { ...other, stored: one.stored },
  ];
}

function isOfFamily({ configured, stored }: RangeAtStart): boolean {
  return configured.includes(':') === stored?.range.includes(':');
}

function refuseNewerSpec({ key, stored }: RangeAtStart, generation: number): void {
  if (stored === undefined || stored.generation <= generation) return;
  throw new RepairError(
    'OlderSpec',
    `${key} was saved under generation ${stored.generation} of the cluster spec, but this pass has generation ${generation}: nothing was written, and the next pass reads the spec again`,
  );
}

/** Returns the range for the claims of Services, or the error of a stored range that does not parse. @throws RepairError `BadRange` */
function openRange(
  { errors }: RepairKind,
  { allocator }: ClusterSpec,
  { key, configured, stored, corrupt }: RangeAtStart,
): Rebuild | AuditedRange | RepairError {
  const ofSpec = allocator === 'apiserver' ? startAudit(key, configured) : emptyRange(key, configured);
  if (isRefused(ofSpec)) throw new RepairError('BadRange', errors.cannotCreate(configured, ofSpec.message));
  if ('usageBitmap' in ofSpec) return ofSpec;
  // A usage bitmap that an audit saved is not a record of allocations by the table.
  const claimed = corrupt ?? startRebuild(key, configured, stored?.allocator === 'table' ? stored : undefined);
  if (!(claimed instanceof Error || isRefused(claimed))) return claimed;
  const advice = `${key} is left unchanged: restore its last good content, or remove it, and the next pass rebuilds it from the Services`;
  const message = `${errors.cannotRestore(configured, claimed.message)}; ${advice}`;
  return new RepairError('CorruptSnapshot', message, corrupt && { cause: corrupt });
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

/** Returns the error with upstream's message before the error's own message. Keeps the code of the error. */
export function reworded(beginning: string, error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`${beginning}: ${String(error)}`, { cause: error });
  const message = `${beginning}: ${error.message}`;
  if (error instanceof TableError) return new TableError(error.code, message, { cause: error });
  if (error instanceof ClusterError) return new ClusterError(error.code, message, { cause: error });
  if (error instanceof CodedError) return new CodedError(error.code, message, { cause: error });
  return new Error(message, { cause: error });
}
