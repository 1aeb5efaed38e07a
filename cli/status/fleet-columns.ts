import type { ClusterStatus } from '../../lib/status/cluster-status.ts';
import type { Column } from '../text-table.ts';
import { bar } from './bar.ts';
import { ago, HEALTH_STYLES } from './status-lines.ts';

/** A line a cluster. */
export function fleetColumns(nowMs: number): Column<ClusterStatus>[] {
  return [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'HEALTH', text: ({ health }) => health, style: ({ health }) => HEALTH_STYLES[health] },
    { title: 'MODE', text: ({ mode }) => mode },
    { title: 'ALLOCATOR', text: ({ allocator }) => allocator, wide: true },
    { title: 'OWNER', text: ({ owner }) => owner?.stack ?? '', wide: true },
    {
      title: 'API SERVERS',
      text: ({ apiServers }) => `${apiServers.filter(({ state }) => state === 'held').length}/${apiServers.length}`,
    },
    { title: 'LAST PASS', text: (status) => ago(latestPassMs(status), nowMs) },
    {
      title: 'FULLEST',
      text: ({ ranges }) => (ranges.length === 0 ? '' : bar(Math.max(...ranges.map(({ usedPercent }) => usedPercent)))),
    },
    { title: 'FINDINGS', text: ({ findings }) => String(findings.length) },
    { title: 'ATTENTION', text: ({ attention }) => attention.map(({ word }) => word).join(','), shrinks: true },
  ];
}

function latestPassMs({ loops }: ClusterStatus): number | undefined {
  const starts = loops.flatMap(({ lastPass }) => lastPass?.startedAtMs ?? []);
  return starts.length === 0 ? undefined : Math.max(...starts);
}
