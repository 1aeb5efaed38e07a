import { AllocatorError } from '../allocator/errors.ts';
import type { Finding } from '../cluster/finding.ts';
import { type Audit, type AuditLedger, auditRange } from '../repair/audit.ts';
import { RepairError } from '../repair/errors.ts';
import { saveRange } from '../table/ranges.ts';
import type { PassContext, PassReport } from './pass.ts';
import { figures, type RepairJob, reworded } from './repair-job.ts';
import type { RangeAtStart } from './repair-read.ts';
import { walkServices } from './repair-walk.ts';

interface Audited {
  readonly range: RangeAtStart;
  readonly audit: Audit;
}

/**
 * Checks what Services claim where the cluster's own API servers allocate and their record is out of reach. What is
 * saved is a picture for those who draw maps, in `observe` too: nothing is allocated by it.
 */
export async function auditApiserver<Item>(
  job: RepairJob<Item>,
  context: PassContext,
  ranges: readonly RangeAtStart[],
): Promise<PassReport> {
  const entered = ranges.map((range) => ({ range, ledger: emptyLedger(job, range) }));
  const walk = job.startWalk(entered.map(({ ledger }) => ledger));
  const aborted = await walkServices(context.kubernetes, job.words.cannotList, walk);
  const counts = { services: walk.services };
  const { listed, unlisted } = walk.findings;
  if (aborted !== undefined) return { changes: [], findings: listed, unlisted, counts, errors: [aborted] };

  const audited = entered.map(({ range, ledger }) => ({
    range,
    audit: auditRange(ledger, job.words, range.read?.stored, context.rangesGeneration),
  }));
  const { changes, errors } = await keepPictures(job, context, audited);
  const corrupt = ranges.flatMap((range) => range.corrupt ?? []);
  return {
    changes,
    errors: [...corrupt.map((error) => reworded(job.words.cannotRead, error)), ...errors],
    unlisted,
    findings: [
      ...listed,
      ...audited.flatMap(({ audit }) => audit.findings),
      ...corrupt.map(({ message }): Finding => ({ type: 'corruptSnapshot', message })),
    ],
    counts: { ...counts, ...figures(audited.map(({ audit }) => audit.counts)) },
  };
}

function emptyLedger<Item>(
  { makeAuditLedger, words }: RepairJob<Item>,
  { configured }: RangeAtStart,
): AuditLedger<Item> {
  const ledger = makeAuditLedger(configured);
  if (!(ledger instanceof AllocatorError)) return ledger;
  throw new RepairError('BadRange', words.cannotCreate(configured, ledger.message), { cause: ledger });
}

/** Whoever wrote meanwhile has drawn as good a picture: a lost save is none to worry about. */
async function keepPictures<Item>(
  { words }: RepairJob<Item>,
  { spec, table }: PassContext,
  audited: readonly Audited[],
): Promise<Pick<PassReport, 'changes' | 'errors'>> {
  const changes: string[] = [];
  for (const { range, audit } of audited) {
    if (range.corrupt !== undefined || audit.next === undefined) continue;
    try {
      const { outcome } = await saveRange(table, spec.name, range.key, audit.next, range.read?.item ?? range.replaces);
      if (outcome === 'won')
        changes.push(`saved ${range.key}: ${audit.counts.allocated} claimed in ${audit.next.range}`);
    } catch (error) {
      return { changes, errors: [reworded(words.cannotSave, error)] };
    }
  }
  return { changes, errors: [] };
}
