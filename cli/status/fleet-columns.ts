import type { ClusterStatus } from '../../lib/status/cluster-status.ts';
import type { Column } from '../text-table.ts';
import { bar, shownPercent } from './bar.ts';
import { HEALTH_STYLES, lastPassAgo } from './status-lines.ts';

/** A line a cluster. */
export function fleetColumns(nowMs: number): Column<ClusterStatus>[] {
  return [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'HEALTH', text: ({ health }) => health, style: ({ health }) => HEALTH_STYLES[health] },
    { title: 'MODE', text: ({ mode }) => mode, yields: true },
    { title: 'ALLOCATOR', text: ({ allocator }) => allocator, wide: true },
    { title: 'OWNER', text: ({ owner }) => owner?.stack ?? '', wide: true },
    {
      title: 'API SERVERS',
      text: ({ apiServers }) => `${apiServers.filter(({ state }) => state === 'held').length}/${apiServers.length}`,
    },
    { title: 'LAST PASS', text: ({ loops }) => lastPassAgo(loops, nowMs), yields: true },
    {
      title: 'FULLEST',
      text: ({ ranges }) => (ranges.length === 0 ? '' : bar(Math.max(...ranges.map(shownPercent)))),
      yields: true,
    },
    { title: 'FINDINGS', text: ({ findings }) => String(findings.length) },
    { title: 'ATTENTION', text: attentionWords, shrinks: true },
  ];
}

/** `duplicate,leak (3)`: each word once. */
function attentionWords({ attention }: ClusterStatus): string {
  const words = Map.groupBy(attention, ({ word }) => word);
  return [...words].map(([word, same]) => (same.length === 1 ? word : `${word} (${same.length})`)).join(',');
}
