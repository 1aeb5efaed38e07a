import type { ApiServerStatus, ClusterStatus } from '../../lib/status/cluster-status.ts';
import { clipped, upTo } from './budget.ts';
import { leaseBadge } from './health.ts';
import { type Child, type Html, html, name } from './html.ts';
import { scrollingTable } from './scrolling-table.ts';
import { counted, when } from './words.ts';

const HEADINGS = ['Address', 'Lease', 'Runs out', 'Refreshed', 'Last probe', 'Kind'];

/** API servers, their leases, and what the last probe of each said. */
export function apiServersSection(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  if (cluster.apiServers.length === 0) {
    return html`<section><h4>API servers</h4><p class="soft">The spec names none, and there is no lease.</p></section>`;
  }
  const { markup, left } = upTo(cluster.apiServers, bytes, (server) => row(server, nowMs));
  return html`<section><h4>API servers</h4>${scrollingTable(`API servers of ${cluster.name}`, HEADINGS, markup)}${left > 0 && html`<p class="soft">and ${left} more: <code>kbctl get leases ${cluster.name}</code></p>`}</section>`;
}

function row(server: ApiServerStatus, nowMs: number): Html {
  const { address, host, expiresAtMs, refreshedAtMs } = server;
  const named = address !== undefined && host !== undefined;
  return html`<tr><th scope="row"><code>${clipped(address ?? host ?? '?', 260)}</code>${named && html` <small>${name(clipped(host, 260))}</small>`}<td>${leaseBadge(server.state)}${withdrawal(server, nowMs)}<td>${expiresAtMs === undefined ? '–' : when(expiresAtMs, nowMs)}<td>${refreshedAtMs === undefined ? '–' : when(refreshedAtMs, nowMs)}<td>${probe(server)}<td>${kind(server)}`;
}

function withdrawal({ withdrawnUntilMs, state }: ApiServerStatus, nowMs: number): Child {
  return state === 'withdrawn' && withdrawnUntilMs !== undefined && html`, ends ${when(withdrawnUntilMs, nowMs)}`;
}

function probe({ source, lastProbe, misses = 0 }: ApiServerStatus): Child {
  if (source === 'agent' && lastProbe === undefined) return 'none: its own host refreshes the lease';
  const missed = misses > 0 && html` <small>${counted(misses, 'miss', 'misses')} in a row</small>`;
  return [lastProbe === undefined ? '–' : clipped(lastProbe, 300), missed];
}

function kind({ kind: told }: ApiServerStatus): string {
  return told ?? 'not in the spec';
}
