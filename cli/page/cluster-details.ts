import type { ClusterStatus } from '../../lib/status/cluster-status.ts';
import { apiServersSection } from './api-servers.ts';
import { attentionList } from './attention.ts';
import { findingsSection } from './findings.ts';
import { type Child, clipped, type Html, html, name, upTo } from './html.ts';
import { loopsSection } from './loops.ts';
import { rangeSection } from './range-map.ts';
import { badge, counted, relative } from './words.ts';

const MOST_ATTENTION = 20;

/**
 * All that is known of one cluster, in about `bytes` and its maps: what is long is cut, and says how much was left out.
 */
export function clusterDetails(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  const { attention, ranges, unreadable } = cluster;
  const more = attention.length - MOST_ATTENTION;
  return html`${facts(cluster, nowMs)}${attentionList(attention.slice(0, MOST_ATTENTION))}${more > 0 && html`<p class="soft">and ${counted(more, 'thing')} more</p>`}${cannotBeRead(unreadable, bytes / 8)}
${apiServersSection(cluster, nowMs, bytes / 4)}${loopsSection(cluster, nowMs)}
${ranges.length > 0 && html`<div class="ranges">${ranges.map((range) => rangeSection(range, nowMs, bytes / 16))}</div>`}${findingsSection(cluster, nowMs, bytes / 3)}`;
}

/** The same, folded under the cluster's name. */
export function foldedDetails(cluster: ClusterStatus, nowMs: number, bytes: number, open: boolean): Html {
  return html`<details id="c-${cluster.name}"${open && html` open`}><summary><h3>${name(cluster.name)}</h3> ${badge(cluster.health)} <span class="soft">${figuresOf(cluster)}</span></summary>
<div class="body">${clusterDetails(cluster, nowMs, bytes)}</div></details>
`;
}

/** `3 of 3 API servers live, 2 findings`. */
export function figuresOf({ apiServers, findings }: ClusterStatus): string {
  const live = apiServers.filter(({ state }) => state === 'held').length;
  return `${live} of ${counted(apiServers.length, 'API server')} live, ${counted(findings.length, 'finding')}`;
}

function facts(cluster: ClusterStatus, nowMs: number): Html {
  const { mode, allocator, generation, owner, paused } = cluster;
  const fact = (term: string, told: Child) => html`<div><dt>${term}<dd>${told}</div>`;
  return html`<dl class="facts">${fact('Mode', mode === 'observe' ? 'observe: writes nothing' : mode)}${fact('Allocator', allocator === 'table' ? 'the table' : 'its API servers')}${fact('Generation', generation)}${fact('Owner', owner === undefined ? 'none' : [clipped(owner.stack, 120), owner.packaged && ' (its cluster.yml)'])}${paused !== undefined && fact('Paused', pause(paused, nowMs))}</dl>`;
}

function pause({ untilMs, reason, by, all }: NonNullable<ClusterStatus['paused']>, nowMs: number): Child {
  return html`<span class="paused">ends ${relative(untilMs, nowMs)}</span>: ${clipped(reason, 300)} (${name(clipped(by, 80))}${all && ', all clusters'})`;
}

function cannotBeRead(unreadable: readonly string[], bytes: number): Html | false {
  if (unreadable.length === 0) return false;
  const { markup, left } = upTo(unreadable, bytes, (what) => html`<li>${clipped(what)}`);
  return html`<section><h4>Cannot be read</h4><ul>${markup}${left > 0 && html`<li>and ${left} more`}</ul></section>`;
}
