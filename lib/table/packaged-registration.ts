import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import { sameSpec, successor, updateRegistration } from './cluster-registration.ts';
import {
  clusterContent,
  type Owner,
  otherOwner,
  type RegisteredCluster,
  type Registration,
  tombstoneContent,
} from './clusters.ts';
import type { Change } from './guaranteed-update.ts';
import type { KeyValueTable } from './key-value-table.ts';

export interface Packager {
  readonly stack: string;
  readonly startedAtMs: number;
  readonly nowMs: number;
}

export type PackagedOutcome =
  | { readonly outcome: 'registered' | 'unchanged'; readonly cluster: RegisteredCluster }
  | { readonly outcome: 'ownedElsewhere'; readonly stack: string }
  /** A process that started later registered another spec a moment ago: this one is being replaced. */
  | { readonly outcome: 'superseded' };

/** By then a deployment is over, and only functions that it deployed are still invoked. */
const SETTLED_MS = 3 * 60_000;

/**
 * Registers the package's `cluster.yml`, in a new generation if it is another spec. The process that started last is
 * right: a version that is being replaced does not restore what its successor replaced, but a rollback, whose processes
 * are younger still, does. A registration that no package made becomes this package's.
 * @throws TableError `SchemaTooNew`, `Contended`.
 */
export function registerPackaged(
  table: KeyValueTable,
  spec: ClusterSpec,
  packager: Packager,
): Promise<PackagedOutcome> {
  const change = (known: Registration | undefined): Change<PackagedOutcome> => {
    const before = known?.cluster;
    const owner = before && otherOwner(before, packager.stack);
    if (owner !== undefined) return { keep: { outcome: 'ownedElsewhere', stack: owner } };
    if (before?.owner?.packaged !== undefined && sameSpec(before.spec, spec)) {
      return { keep: { outcome: 'unchanged', cluster: before } };
    }
    if (isSuperseded(known?.owner, packager)) return { keep: { outcome: 'superseded' } };
    const cluster = successor(known, spec, ownerOf(packager));
    return { write: clusterContent(cluster), result: { outcome: 'registered', cluster } };
  };
  return updateRegistration(table, spec.name, change);
}

/**
 * Ends the passes of a cluster that the stack's package contained and no longer does. A cluster that was registered
 * otherwise, or belongs to another stack, stays. @returns whether it was unregistered.
 * @throws TableError `SchemaTooNew`, `Contended`.
 */
export function unregisterPackaged(table: KeyValueTable, name: string, packager: Packager): Promise<boolean> {
  const change = (known: Registration | undefined): Change<boolean> => {
    const owner = known?.cluster?.owner;
    const isOurs = owner?.stack === packager.stack && owner.packaged !== undefined;
    if (known === undefined || !isOurs || isSuperseded(owner, packager)) return { keep: false };
    return { write: tombstoneContent(known.generation, ownerOf(packager)), result: true };
  };
  return updateRegistration(table, name, change);
}

function isSuperseded(owner: Owner | undefined, { stack, startedAtMs, nowMs }: Packager): boolean {
  if (owner?.packaged === undefined || owner.stack !== stack) return false;
  const { packaged } = owner;
  return packaged.startedAtMs > startedAtMs && nowMs - packaged.writtenAtMs < SETTLED_MS;
}

function ownerOf({ stack, startedAtMs, nowMs }: Packager): Owner {
  return { stack, packaged: { startedAtMs, writtenAtMs: nowMs } };
}
