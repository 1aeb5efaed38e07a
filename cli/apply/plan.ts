import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { sameSpec } from '../../lib/table/cluster-registration.ts';
import { listClusters, type RegisteredCluster } from '../../lib/table/clusters.ts';
import type { TableError } from '../../lib/table/key-value-table.ts';
import type { Cli } from '../cli.ts';
import { type FieldDifference, specDifference } from '../spec/written-spec.ts';
import type { SpecFile } from './spec-files.ts';

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

export type FoundRegistration = RegisteredCluster | TableError | undefined;

/**
 * Returns the steps in the order of the files, then the removals.
 * @param known returns the registration of a name
 * @param all all registrations, with --prune
 */
export function planApply(
  files: readonly SpecFile[],
  known: (name: string) => FoundRegistration,
  all: readonly RegisteredCluster[] | undefined,
): readonly ApplyStep[] {
  const planned = files.map((file) => stepFor(file, known(file.spec.name)));
  const named = new Set(files.map(({ spec }) => spec.name));
  const removed = (all ?? []).filter(({ spec }) => !named.has(spec.name));
  return [...planned, ...removed.map((before): ApplyStep => ({ action: 'remove', before }))];
}

export function clusterOfStep(step: ApplyStep): string {
  return step.action === 'remove' ? step.before.spec.name : step.file.spec.name;
}

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

function summaryOf({ mode, allocator, serviceClusterIPRanges, apiServers }: ClusterSpec): string {
  const servers = `${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}`;
  return `mode ${mode}, allocator ${allocator}, ${serviceClusterIPRanges.join(',')}, ${servers}`;
}

export interface FoundRegistrations {
  readonly known: (name: string) => FoundRegistration;
  readonly all: readonly RegisteredCluster[];
  readonly unreadable: readonly string[];
}

/**
 * Reads all registrations.
 * @throws TableError for one of a later version that a file would replace
 */
export async function lookUp(cli: Cli, files: readonly SpecFile[]): Promise<FoundRegistrations> {
  const { table } = await cli.openTable();
  const { clusters, unreadable } = await listClusters(table);
  const names = files.map(({ spec }) => spec.name);
  const isNamed = ({ name }: { readonly name: string }) => names.includes(name);
  const newer = unreadable.filter(isNamed).find(({ error }) => error.code !== 'Corrupt');
  if (newer !== undefined) throw newer.error;
  const byName = new Map<string, FoundRegistration>([
    ...clusters.map((cluster) => [cluster.spec.name, cluster] as const),
    ...unreadable.map(({ name, error }) => [name, error] as const),
  ]);
  return {
    known: (name) => byName.get(name),
    all: clusters,
    unreadable: unreadable.map(({ name }) => name).filter((name) => !names.includes(name)),
  };
}
