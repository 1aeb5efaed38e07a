import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { sameSpec } from '../../lib/table/cluster-registration.ts';
import type { ClusterList, RegisteredCluster } from '../../lib/table/clusters.ts';
import { type FieldDifference, specDifference } from '../spec/written-spec.ts';
import type { SpecFile } from './spec-files.ts';

export type ApplyStep = {
  readonly name: string;
  readonly intention: string;
} & (
  | { readonly action: 'create'; readonly file: SpecFile }
  | {
      readonly action: 'change';
      readonly file: SpecFile;
      readonly before: RegisteredCluster;
      readonly differences: readonly FieldDifference[];
    }
  | { readonly action: 'keep'; readonly file: SpecFile; readonly before: RegisteredCluster }
  | { readonly action: 'remove'; readonly before: RegisteredCluster }
);

export function planApply(
  files: readonly SpecFile[],
  { clusters, unreadable }: Pick<ClusterList, 'clusters' | 'unreadable'>,
  prune: boolean,
): readonly ApplyStep[] {
  const known = new Map(clusters.map((cluster) => [cluster.spec.name, cluster]));
  const broken = new Set(unreadable.map(({ name }) => name));
  const planned = files.map((file) => stepFor(file, known.get(file.spec.name), broken));
  const named = new Set(planned.map(({ name }) => name));
  const removed = prune ? clusters.filter(({ spec }) => !named.has(spec.name)) : [];
  return [
    ...planned,
    ...removed.map((before): ApplyStep => {
      return { name: before.spec.name, action: 'remove', before, intention: 'to be removed: it is in no file' };
    }),
  ];
}

function stepFor(file: SpecFile, before: RegisteredCluster | undefined, broken: ReadonlySet<string>): ApplyStep {
  const { name } = file.spec;
  if (broken.has(name)) {
    return { name, action: 'create', file, intention: 'to be replaced: its registration cannot be read' };
  }
  if (before === undefined) {
    return { name, action: 'create', file, intention: `to be created (${summaryOf(file.spec)})` };
  }
  if (sameSpec(before.spec, file.spec)) return { name, action: 'keep', file, before, intention: 'unchanged' };
  const differences = specDifference(before.spec, file.spec);
  return { name, action: 'change', file, before, differences, intention: 'to be changed' };
}

function summaryOf({ mode, allocator, serviceClusterIPRanges, apiServers }: ClusterSpec): string {
  const servers = `${apiServers.length} API ${apiServers.length === 1 ? 'server' : 'servers'}`;
  return `mode ${mode}, allocator ${allocator}, ${serviceClusterIPRanges.join(',')}, ${servers}`;
}
