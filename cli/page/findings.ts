import type { ClusterStatus, FindingStatus } from '../../lib/status/cluster-status.ts';
import { clipped, upTo } from './budget.ts';
import { type Html, html, name } from './html.ts';
import { scrollingTable } from './scrolling-table.ts';
import { counted, when } from './words.ts';

/** Findings by type: where, why, how to mend it, and how to read more. */
export function findingsSection(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  if (cluster.findings.length === 0) {
    return html`<section><h4>Findings</h4><p class="soft">None in the last passes.</p></section>`;
  }
  const groups = [...Map.groupBy(cluster.findings, ({ type }) => type)];
  const each = bytes / groups.length;
  return html`<section><h4>Findings</h4>${groups.map(([type, findings]) => group(cluster.name, type, findings, nowMs, each))}</section>`;
}

function group(cluster: string, type: string, findings: readonly FindingStatus[], nowMs: number, bytes: number): Html {
  const mends = new Set(findings.map(({ mend }) => mend));
  const [same = ''] = mends;
  const ownMend = mends.size > 1;
  const headings = ['Service', 'Item', 'Reason', ...(ownMend ? ['Resolution'] : []), 'Seen'];
  const { markup, left } = upTo(findings, bytes, (finding) => row(finding, ownMend, nowMs));
  return html`<div class="findings"><h5>${clipped(type, 60)} <small>${counted(findings.length, 'finding')}</small></h5>
<p>${!ownMend && [clipped(same), ' ']}<code>kbctl explain ${clipped(type, 60)}</code></p>${scrollingTable(`${clipped(type, 60)} of ${cluster}`, headings, markup)}${left > 0 && html`<p class="soft">and ${left} more: <code>kbctl get findings ${cluster}</code></p>`}</div>`;
}

function row({ service, item, message, mend, seenAtMs }: FindingStatus, ownMend: boolean, nowMs: number): Html {
  const where = service === undefined ? '–' : name(clipped(service, 330));
  return html`<tr><th scope="row">${where}<td>${item === undefined ? '–' : html`<code>${clipped(item, 60)}</code>`}<td class="long">${clipped(message)}${ownMend && html`<td class="long">${clipped(mend)}`}<td>${when(seenAtMs, nowMs)}`;
}
