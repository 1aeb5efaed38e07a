import { formatAge, formatDuration } from '../status/age.ts';
import type { ApiServerStatus, Attention, ClusterStatus, FindingStatus, LoopStatus } from '../status/cluster-status.ts';
import { isOneOfMany } from '../status/loops-and-leases.ts';

import { type Child, clipped, type Html, html, name, table, upTo } from './html.ts';
import { rangeSection } from './range-map.ts';
import { badge, counted, LOOP_STATES, leaseBadge, relative, timeOf, when } from './words.ts';

const MOST_ATTENTION = 20;

/** Returns all that is known of one cluster, in about `bytes` and its maps. Long lists are cut, with the number left out. */
export function clusterDetails(cluster: ClusterStatus, nowMs: number, bytes: number, attentionAbove = false): Html {
  const { attention, ranges, unreadable } = cluster;
  const more = attention.length - MOST_ATTENTION;
  const needs =
    !attentionAbove &&
    html`${attentionList(attention.slice(0, MOST_ATTENTION))}${more > 0 && html`<p class="soft">and ${counted(more, 'thing')} more</p>`}`;
  return html`${facts(cluster, nowMs)}${needs}${cannotBeRead(unreadable, bytes / 8)}
${apiServers(cluster, nowMs, bytes / 4)}${loops(cluster, nowMs, bytes / 8)}
${ranges.length > 0 && html`<div class="ranges">${ranges.map((range) => rangeSection(range, nowMs, bytes / 16))}</div>`}${findings(cluster, nowMs, bytes / 3)}`;
}

/** The same details, folded under the cluster's name. */
export function foldedDetails(
  cluster: ClusterStatus,
  nowMs: number,
  bytes: number,
  { open, attentionAbove }: { readonly open: boolean; readonly attentionAbove: boolean },
): Html {
  return html`<details id="c-${cluster.name}"${open && html` open`}><summary><h3>${name(cluster.name)}</h3> ${badge(cluster.health)} <span class="soft">${figuresOf(cluster)}</span></summary>
<div class="body">${clusterDetails(cluster, nowMs, bytes, attentionAbove)}</div></details>
`;
}

/** `3 of 3 API servers live, 2 findings`. */
export function figuresOf({ apiServers: servers, findings: found }: ClusterStatus): string {
  const live = servers.filter(({ state }) => state === 'active').length;
  return `${live} of ${counted(servers.length, 'API server')} live, ${counted(found.length, 'finding')}`;
}

/** Problems with their resolution. */
export function attentionList(attention: readonly Attention[]): Html | false {
  if (attention.length === 0) return false;
  return html`<ul class="attention">${attention.map(
    ({ level, word, message, next }) =>
      html`<li><p class="${level === 'bad' ? 'bad' : 'warning'}">${clipped(message)}</p><p class="next">${clipped(next)} <code>kbctl explain ${clipped(word, 60)}</code></p>`,
  )}</ul>`;
}

function facts(cluster: ClusterStatus, nowMs: number): Html {
  const { mode, allocator, generation, owner, paused } = cluster;
  const fact = (term: string, value: Child) => html`<div><dt>${term}<dd>${value}</div>`;
  return html`<dl class="facts">${fact('Mode', mode === 'observe' ? 'observe: writes nothing' : mode)}${fact('Allocator', allocator === 'table' ? 'the table' : 'its API servers')}${fact('Generation', generation)}${fact('Owner', owner === undefined ? 'none' : clipped(owner.stack, 120))}${paused !== undefined && fact('Paused', pause(paused, nowMs))}</dl>`;
}

function pause({ untilMs, reason, by, all }: NonNullable<ClusterStatus['paused']>, nowMs: number): Child {
  return html`<span class="paused">ends ${relative(untilMs, nowMs)}</span>: ${clipped(reason, 300)} (${name(clipped(by, 80))}${all && ', all clusters'})`;
}

function cannotBeRead(unreadable: readonly string[], bytes: number): Html | false {
  if (unreadable.length === 0) return false;
  const { markup, left } = upTo(unreadable, bytes, (what) => html`<li>${clipped(what)}`);
  return html`<section><h4>Cannot be read</h4><ul>${markup}${left > 0 && html`<li>and ${left} more`}</ul></section>`;
}

function apiServers(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  if (cluster.apiServers.length === 0) {
    return html`<section><h4>API servers</h4><p class="soft">None in the spec, and no lease.</p></section>`;
  }
  const { markup, left } = upTo(cluster.apiServers, bytes, (server) => apiServerRow(server, nowMs));
  return html`<section><h4>API servers</h4>${table('servers', `API servers of ${cluster.name}`, markup)}${left > 0 && html`<p class="soft">and ${left} more: <code>kbctl get leases ${cluster.name}</code></p>`}</section>`;
}

function apiServerRow(server: ApiServerStatus, nowMs: number): Html {
  const {
    address,
    host,
    kind,
    state,
    expiresAtMs,
    refreshedAtMs,
    withdrawnUntilMs,
    source,
    lastProbe,
    misses = 0,
  } = server;
  const hostName = address !== undefined && host !== undefined && html` <small>${name(clipped(host, 260))}</small>`;
  const withdrawal =
    state === 'withdrawn' && withdrawnUntilMs !== undefined && html`, ends ${when(withdrawnUntilMs, nowMs)}`;
  const unprobed = source === 'agent' ? 'none: the agent on its host refreshes the lease' : '–';
  const missed = misses > 0 && html` <small>${counted(misses, 'miss', 'misses')} in a row</small>`;
  return html`<tr><th scope="row"><code>${clipped(address ?? host ?? '?', 260)}</code>${hostName}<td>${leaseBadge(state)}${withdrawal}<td>${time(expiresAtMs, nowMs)}<td>${time(refreshedAtMs, nowMs)}<td>${lastProbe === undefined ? unprobed : clipped(lastProbe, 300)}${missed}<td>${kind ?? 'not in the spec'}`;
}

function time(atMs: number | undefined, nowMs: number): Child {
  return atMs === undefined ? '–' : when(atMs, nowMs);
}

function loops(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  const rows = cluster.loops.map((loop) => [loopRow(loop, nowMs), errorRow(loop)]);
  return html`<section><h4>Loops</h4>${table('loops', `Loops of ${cluster.name}`, rows)}${writes(cluster, nowMs, bytes)}</section>`;
}

/** What passes would write in `enforce`, and their last changes. */
function writes({ name: cluster, loops: all }: ClusterStatus, nowMs: number, bytes: number): Child {
  const withheld = all.flatMap(({ loop, wouldWrite = [] }) =>
    wouldWrite.map((text) => html`<li>${loop}: would ${clipped(text)}`),
  );
  const changed = all.flatMap(({ loop, lastChange }) =>
    (lastChange?.changes ?? []).map((text) => html`<li>${loop}, ${time(lastChange?.atMs, nowMs)}: ${clipped(text)}`),
  );
  const list = (title: string, items: readonly Html[]) => {
    const { markup, left } = upTo(items, bytes, (item) => item);
    return (
      items.length > 0 &&
      html`<h5>${title}</h5><ul class="writes">${markup}${left > 0 && html`<li>and ${left} more: <code>kbctl status ${cluster} -o yaml</code>`}</ul>`
    );
  };
  return [list('Would write', withheld), list('Last changes', changed)];
}

function loopRow(status: LoopStatus, nowMs: number): Html {
  const { loop, state, intervalSeconds, lastPass, lastRanAtMs, failuresInARow, lastSuccessAtMs } = status;
  const passTime = (atMs: number) => {
    if (lastRanAtMs !== undefined) return when(lastRanAtMs, nowMs);
    return isOneOfMany(status, nowMs) ? timeOf(atMs, 'within the last minute') : when(atMs, nowMs);
  };
  const last = lastPass && [
    passTime(lastPass.startedAtMs),
    ` ${lastPass.outcome}`,
    lastPass.mode === 'observe' && ', observed',
  ];
  const took = lastPass && formatDuration(lastPass.durationMs);
  return html`<tr><th scope="row">${loop} <small>every ${formatAge(intervalSeconds * 1_000)}</small><td>${badge(...LOOP_STATES[state])}<td>${last ?? '–'}<td>${took ?? '–'}<td>${lastPass?.findings ?? '–'}<td>${failuresInARow}<td>${lastSuccessAtMs === undefined ? '–' : passTime(lastSuccessAtMs)}`;
}

function errorRow({ lastPass }: LoopStatus): Child {
  if (lastPass?.error === undefined) return undefined;
  const { code, message } = lastPass.error;
  return html`<tr class="error"><td colspan="7"><code>${clipped(code, 60)}</code> ${clipped(message)}`;
}

/** Findings by type, without those that attention shows in full. */
function findings(cluster: ClusterStatus, nowMs: number, bytes: number): Html {
  const words = new Set(cluster.attention.map(({ word }) => word));
  const groups = [...Map.groupBy(cluster.findings, ({ type }) => type)];
  const listed = groups.filter(([type, found]) => found.length > 1 || !words.has(type));
  const above = groups.length - listed.length;
  const note =
    cluster.findings.length === 0
      ? 'None in the last passes.'
      : above > 0 && `${counted(above, 'finding is', 'findings are')} shown above.`;
  return html`<section><h4>Findings</h4>${note && html`<p class="soft">${note}</p>`}${listed.map(([type, found]) => findingGroup(cluster.name, type, found, nowMs, bytes / listed.length))}</section>`;
}

function findingGroup(
  cluster: string,
  type: string,
  found: readonly FindingStatus[],
  nowMs: number,
  bytes: number,
): Html {
  const resolutions = new Set(found.map(({ mend }) => mend));
  const [first = ''] = resolutions;
  const isShared = resolutions.size === 1;
  const { markup, left } = upTo(found, bytes, (finding) => findingRow(finding, isShared, nowMs));
  return html`<div class="findings"><h5>${clipped(type, 60)} <small>${counted(found.length, 'finding')}</small></h5>
<p>${isShared && [clipped(first), ' ']}<code>kbctl explain ${clipped(type, 60)}</code></p>${table('findings', `${clipped(type, 60)} of ${cluster}`, markup)}${left > 0 && html`<p class="soft">and ${left} more: <code>kbctl get findings ${cluster}</code></p>`}</div>`;
}

function findingRow({ service, item, message, mend, seenAtMs }: FindingStatus, isShared: boolean, nowMs: number): Html {
  const where = service === undefined ? '–' : name(clipped(service, 330));
  return html`<tr><th scope="row">${where}<td>${item === undefined ? '–' : html`<code>${clipped(item, 60)}</code>`}<td class="long">${clipped(message)}${!isShared && html`<br><small>${clipped(mend)}</small>`}<td>${when(seenAtMs, nowMs)}`;
}
