import type { ClusterStatus, FleetStatus, LoopStatus } from '../../lib/status/cluster-status.ts';
import { type Fitted, upTo } from './budget.ts';
import { HEALTH_WORDS, HEALTHS, loopWord } from './health.ts';
import { type Child, type Html, html } from './html.ts';
import { grouped, percentage, span } from './words.ts';

/** These many are found without a filter. */
const FEW = 5;

const HEADINGS = ['Cluster', 'Health', 'Findings', 'API servers', 'Last pass', 'Fullest range', 'Mode', 'Allocator'];

/** A row for each cluster as far as `bytes` go. End tags that HTML does not ask for are left out: there may be thousands of rows. */
export function glanceRows(fleet: FleetStatus, bytes: number, linked: (cluster: string) => Child): Fitted {
  return upTo(fleet.clusters, bytes, (cluster) => row(cluster, linked(cluster.name), fleet.atMs));
}

/** All clusters at a glance. The filter shows itself where there is JavaScript. */
export function atAGlance(fleet: FleetStatus, rows: Fitted): Html {
  if (fleet.clusters.length === 0) return html``;
  return html`<section aria-labelledby="all"><h2 id="all">All clusters <small>${grouped(fleet.clusters.length)}</small></h2>
${
  fleet.clusters.length > FEW &&
  html`<form id="filter" role="search" hidden><label>Name <input id="filter-name" type="search" autocomplete="off" spellcheck="false"></label><label>Health <select id="filter-health"><option value="">any</option>${HEALTHS.map(
    (health) => html`<option value="${health}">${HEALTH_WORDS[health]}</option>`,
  )}</select></label><p id="filter-count" role="status" data-own=""></p></form>`
}
<div class="scroll" role="region" aria-label="Table of all clusters" tabindex="0"><table id="glance"><caption>Clusters, those that need a person first, then by name</caption><thead><tr>${HEADINGS.map(
    (heading) => html`<th scope="col">${heading}`,
  )}<tbody>${rows.markup}</table></div>${rows.left > 0 && html`<p class="soft">and ${grouped(rows.left)} more clusters: <code>kbctl status</code></p>`}</section>`;
}

function row(cluster: ClusterStatus, link: Child, nowMs: number): Html {
  const { health, apiServers, findings, mode, allocator } = cluster;
  const live = apiServers.filter(({ state }) => state === 'held').length;
  return html`<tr><th scope="row">${link}<td class="${health}">${HEALTH_WORDS[health]}<td>${findings.length}<td>${live}/${apiServers.length}<td>${lastPasses(cluster.loops, nowMs)}${fullest(cluster)}<td>${mode}<td>${allocator}`;
}

/** What is not as it should be, or how long ago the last pass of any loop was. */
function lastPasses(loops: readonly LoopStatus[], nowMs: number): string {
  for (const state of ['failing', 'late'] as const) {
    const count = loops.filter((loop) => loop.state === state).length;
    if (count > 0) return `${count} ${loopWord(state)}`;
  }
  const last = Math.max(...loops.map(({ lastPass }) => lastPass?.startedAtMs ?? 0));
  return last > 0 ? span(nowMs - last) : 'never';
}

/** A cell with a bar below its figure: its class is a twentieth of fullness. */
function fullest({ ranges }: ClusterStatus): Html {
  const [most] = ranges.toSorted((one, other) => other.usedPercent - one.usedPercent);
  if (most === undefined) return html`<td>–`;
  const { used, capacity } = most;
  const twentieths = capacity === 0 ? 0 : Math.min(20, Math.ceil((20 * used) / capacity));
  return html`<td class="f${twentieths}">${percentage(used, capacity)}`;
}
