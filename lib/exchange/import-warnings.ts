import type { RegisteredCluster } from '../table/clusters.ts';
import { ExchangeError } from './errors.ts';
import type { ExchangeFile } from './exchange-file.ts';
import { rangeItems } from './range-items.ts';

/** What somebody should know before this file goes into this cluster. One sentence or two each. */
export function importWarnings(file: ExchangeFile, cluster: RegisteredCluster, nowMs: number): readonly string[] {
  return [...aboutFile(file, cluster.spec.name), ...aboutCluster(cluster, nowMs)];
}

function aboutFile(file: ExchangeFile, name: string): string[] {
  if (file.kind === 'ClusterRanges') {
    const { cluster, exportedAtMs } = file.clusterRanges;
    if (cluster === name) return [];
    return [`The file was exported from cluster ${cluster}, at ${new Date(exportedAtMs).toISOString()}.`];
  }
  const { range, metadata } = file.allocation;
  const items = rangeItems(range);
  if (items instanceof ExchangeError || items.kind === 'ports') return [];
  const created =
    metadata.creationTimestamp === undefined
      ? 'It does not say when it was made.'
      : `It was made at ${metadata.creationTimestamp}.`;
  return [
    `Kubernetes 1.34 and later no longer write /registry/ranges/serviceips and /registry/ranges/secondaryserviceips: the copy of a cluster that was upgraded may be years old, and lack every address allocated since. ${created}`,
  ];
}

function aboutCluster({ spec, paused }: RegisteredCluster, nowMs: number): string[] {
  const warnings: string[] = [];
  if (spec.mode === 'observe') {
    warnings.push(
      `Cluster ${spec.name} has "mode: observe": nothing is allocated until it enforces and a pass has saved.`,
    );
  }
  if (paused !== undefined && paused.untilMs > nowMs) {
    warnings.push(
      `Cluster ${spec.name} is paused until ${new Date(paused.untilMs).toISOString()}: nothing is allocated until its passes go on.`,
    );
  }
  return warnings;
}
