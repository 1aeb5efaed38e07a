import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { eachOf } from '../../lib/cluster/each-of.ts';
import { type FieldDifference, specDifference } from '../../lib/spec/written-spec.ts';
import { sameSpec } from '../../lib/table/cluster-registration.ts';
import { listClusters, type RegisteredCluster, readCluster } from '../../lib/table/clusters.ts';
import { TableError } from '../../lib/table/errors.ts';
import type { Cli } from '../cli.ts';
import type { SpecFile } from './spec-files.ts';

/** What `apply` does to one registration. */
export type ApplyStep =
  | { readonly action: 'create'; readonly file: SpecFile; readonly unreadable?: TableError }
  | {
      readonly action: 'change';
      readonly file: SpecFile;
      readonly before: RegisteredCluster;
      readonly differences: readonly FieldDifference[];
    }
  | { readonly action: 'keep'; readonly file: SpecFile; readonly before: RegisteredCluster }
  | { readonly action: 'remove'; readonly before: RegisteredCluster };

export interface ApplyPlan {
  /** In the order of the files, then the removals. */
  readonly steps: readonly ApplyStep[];
  /** Clusters that cannot be changed here: each is the cluster.yml of a stack. */
  readonly packaged: readonly RegisteredCluster[];
  /** Packaged clusters that are in no file, and are kept. */
  readonly left: readonly RegisteredCluster[];
}

/** A registration, or why it cannot be read. */
export type FoundRegistration = RegisteredCluster | TableError | undefined;

/**
 * @param known returns the registration of a name
 * @param all all registrations, with --prune
 */
export function planApply(
  files: readonly SpecFile[],
  known: (name: string) => FoundRegistration,
  all: readonly RegisteredCluster[] | undefined,
): ApplyPlan {
  const planned = files.map((file) => stepFor(file, known(file.spec.name)));
  const named = new Set(files.map(({ spec }) => spec.name));
  const unnamed = (all ?? []).filter(({ spec }) => !named.has(spec.name));
  const removed = unnamed.filter((cluster) => !isPackaged(cluster));
  return {
    steps: [...planned, ...removed.map((before): ApplyStep => ({ action: 'remove', before }))],
    packaged: planned.flatMap((step) => (step.action === 'change' && isPackaged(step.before) ? [step.before] : [])),
    left: unnamed.filter(isPackaged),
  };
}

export function nameOf(step: ApplyStep): string {
  return step.action === 'remove' ? step.before.spec.name : step.file.spec.name;
}

/** Describes a step before it is done. */
export function intention(step: ApplyStep): string {
  switch (step.action) {
    case 'create':
      return step.unreadable === undefined
        ? `to be created (${summaryOf(step.file.spec)})`
        : 'to be replaced: its registration cannot be read';
    case 'change':
      return 'to be changed';
    case 'keep':
      return 'unchanged';
    case 'remove':
      return 'to be removed: it is in no file';
  }
}

function stepFor(file: SpecFile, known: FoundRegistration): ApplyStep {
  if (known === undefined) return { action: 'create', file };
  if (known instanceof Error) return { action: 'create', file, unreadable: known };
  if (sameSpec(known.spec, file.spec)) return { action: 'keep', file, before: known };
  return { action: 'change', file, before: known, differences: specDifference(known.spec, file.spec) };
}

function isPackaged({ owner }: RegisteredCluster): boolean {
  return owner?.packaged !== undefined;
}

function summaryOf({ mode, allocator, serviceClusterIPRanges, apiServers }: ClusterSpec): string {
  const servers = `${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}`;
  return `mode ${mode}, allocator ${allocator}, ${serviceClusterIPRanges.join(',')}, ${servers}`;
}

export interface FoundRegistrations {
  readonly known: (name: string) => FoundRegistration;
  /** All registrations, with --prune. */
  readonly all: readonly RegisteredCluster[];
  /** Names in no file whose registrations cannot be read. */
  readonly unreadable: readonly string[];
}

const AT_ONCE = 16;

/** Reads the registrations of the files' names, and all others with `everything`. */
export async function lookUp(cli: Cli, files: readonly SpecFile[], everything: boolean): Promise<FoundRegistrations> {
  const { table } = await cli.openTable();
  const byName = new Map<string, FoundRegistration>();
  const names = files.map(({ spec }) => spec.name);
  if (!everything) {
    await eachOf(names, AT_ONCE, async (name) => {
      await readCluster(table, name).then(
        (cluster) => byName.set(name, cluster),
        (error: unknown) => {
          if (!isCorrupt(error)) throw error;
          byName.set(name, error);
        },
      );
    });
    return { known: (name) => byName.get(name), all: [], unreadable: [] };
  }
  const { clusters, unreadable } = await listClusters(table);
  for (const cluster of clusters) byName.set(cluster.spec.name, cluster);
  for (const { name, error } of unreadable) {
    if (names.includes(name) && !isCorrupt(error)) throw error;
    byName.set(name, error);
  }
  const others = unreadable.map(({ name }) => name).filter((name) => !names.includes(name));
  return { known: (name) => byName.get(name), all: clusters, unreadable: others };
}

/** A corrupt registration may be replaced; one of a later version may not. */
function isCorrupt(error: unknown): error is TableError {
  return error instanceof TableError && error.code === 'Corrupt';
}
