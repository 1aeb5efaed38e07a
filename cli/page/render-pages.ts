import { formatAge } from '../status/age.ts';
import {
  type ClusterStatus,
  type FleetStatus,
  type Health,
  type LoopStatus,
  wholeRanges,
} from '../status/cluster-status.ts';
import { attentionList, clusterDetails, figuresOf, foldedDetails } from './cluster-details.ts';
import { type Child, clipped, type Fitted, type Html, html, name, table, upTo } from './html.ts';
import { type PageOptions, page } from './page-frame.ts';
import { badge, counted, grouped, HEALTH_WORDS, HEALTHS, LOOP_STATES, percentage, relative } from './words.ts';

/** The most bytes of the page, and of its parts. Details take the rest. */
const PAGE_BYTES = 292_000;
const ATTENTION_BYTES = 40_000;
/** The most problems on the card of a cluster. */
const MOST_OF_A_CLUSTER = 4;
const ROWS_BYTES = 190_000;
/** The most bytes of one cluster among others. */
const DETAILS_BYTES = 24_000;
const ONLY_DETAILS_BYTES = 120_000;

const SUMMARY_WORDS: Record<Health, readonly [one: string, many: string]> = {
  bad: ['needs attention', 'need attention'],
  warning: ['has a warning', 'have a warning'],
  unknown: ['is not known yet', 'are not known yet'],
  paused: ['is paused', 'are paused'],
  good: ['is good', 'are good'],
};

/**
 * The page of all clusters: always under 300 KB. Details that do not fit are a link on a live page, a command in a
 * file.
 */
export function renderFleetPage(fleet: FleetStatus, options: PageOptions = {}): string {
  const live = options.live !== undefined;
  const anywhere = (cluster: string) => anchor(cluster, live ? clusterPath(cluster) : fragment(cluster));
  const attention = needsAttention(fleet, ATTENTION_BYTES, anywhere);
  const widest = glanceRows(fleet, ROWS_BYTES, anywhere);
  const frame = Buffer.byteLength(framed(fleet, options, html``));
  const cards = countOf(fleet.clusters, 'bad') - attention.left;
  const details = detailsOf(fleet, PAGE_BYTES - frame - attention.bytes - widest.bytes, cards);
  const detailed = new Set(
    fleet.clusters.slice(0, fleet.clusters.length - details.left).map((cluster) => cluster.name),
  );

  const linked = (cluster: string) => {
    if (detailed.has(cluster)) return anchor(cluster, fragment(cluster));
    return live ? anchor(cluster, clusterPath(cluster)) : cluster;
  };
  const rows =
    widest.left === 0 ? glanceRows(fleet, ROWS_BYTES, linked) : glanceRows(fleet, ROWS_BYTES, (cluster) => cluster);
  const main = html`${needsAttention(fleet, ATTENTION_BYTES, linked).markup}
${atAGlance(fleet, rows)}
${detailsSection(details, live)}`;
  return framed(fleet, options, main);
}

function framed(fleet: FleetStatus, options: PageOptions, main: Html): string {
  const summary = summaryOf(fleet);
  const bad = countOf(fleet.clusters, 'bad') + fleet.unreadable.length;
  return page({
    ...options,
    title: `${bad > 0 ? `${grouped(bad)} ${SUMMARY_WORDS.bad[bad === 1 ? 0 : 1]}` : 'All clusters'} – ${clipped(fleet.table, 100)}`,
    nav: html`<p class="eyebrow">kube-bootstrap-controller</p>`,
    heading: 'Clusters',
    about: html`Table ${name(clipped(fleet.table, 260))}`,
    summary,
    atMs: fleet.atMs,
    main: html`${pausedAll(fleet)}${main}`,
  });
}

/** @param cards how many clusters have a card with their problems */
function detailsOf(fleet: FleetStatus, bytes: number, cards: number): Fitted {
  const open = fleet.clusters.length === 1;
  const each = open ? ONLY_DETAILS_BYTES : DETAILS_BYTES;
  const hasCard = new Set(
    fleet.clusters.slice(0, cards).filter(({ attention }) => attention.length <= MOST_OF_A_CLUSTER),
  );
  return upTo(fleet.clusters, bytes, (cluster) =>
    foldedDetails(cluster, fleet.atMs, each, { open, attentionAbove: hasCard.has(cluster) }),
  );
}

function detailsSection({ markup, bytes, left }: Fitted, live: boolean): Html | false {
  if (bytes === 0 && left === 0) return false;
  const more = live ? 'follow its name in the table above' : html`<code>kbctl page NAME</code> makes a page of one`;
  return html`<section aria-labelledby="details"><h2 id="details">Details</h2>${markup}${left > 0 && html`<p class="soft">The details of ${counted(left, 'more cluster')} are left out, to keep this page small: ${more}.</p>`}</section>`;
}

function pausedAll({ pausedAll: pause, atMs }: FleetStatus): Html | false {
  if (pause === undefined) return false;
  return html`<p class="banner"><b class="paused">All clusters are paused</b>, ends ${relative(pause.untilMs, atMs)}: ${clipped(pause.reason, 300)} (${name(clipped(pause.by, 80))})</p>`;
}

/** Returns `2 of 9 clusters need attention, 1 has a warning, 6 are good.` */
function summaryOf({ clusters, unreadable }: FleetStatus): string {
  if (clusters.length + unreadable.length === 0) return 'No cluster is registered.';
  const parts = HEALTHS.flatMap((health) => {
    const count = countOf(clusters, health) + (health === 'bad' ? unreadable.length : 0);
    return count === 0 ? [] : [{ count, words: SUMMARY_WORDS[health][count === 1 ? 0 : 1] }];
  });
  const [only] = clusters;
  if (only !== undefined && clusters.length + unreadable.length === 1)
    return `${only.name} ${SUMMARY_WORDS[only.health][0]}.`;
  const all = counted(clusters.length + unreadable.length, 'cluster');
  return `${parts.map(({ count, words }, index) => `${grouped(count)}${index === 0 ? ` of ${all}` : ''} ${words}`).join(', ')}.`;
}

function countOf(clusters: readonly ClusterStatus[], health: Health): number {
  return clusters.filter((cluster) => cluster.health === health).length;
}

function anchor(cluster: string, href: string): Child {
  return html`<a href="${href}">${cluster}</a>`;
}

function fragment(cluster: string): string {
  return `#c-${cluster}`;
}

/** Returns a path relative to the page of all clusters. */
function clusterPath(cluster: string): string {
  return `clusters/${encodeURIComponent(cluster.toWellFormed())}`;
}

/** This many clusters need no filter. */
const FEW = 5;

/**
 * Returns a row for each cluster within `bytes`. Optional end tags of HTML are omitted: there may be thousands of rows.
 */
function glanceRows(fleet: FleetStatus, bytes: number, linked: (cluster: string) => Child): Fitted {
  return upTo(fleet.clusters, bytes, (cluster) => row(cluster, linked(cluster.name), fleet.atMs));
}

/** Returns all clusters at a glance. The filter appears only with JavaScript. */
function atAGlance(fleet: FleetStatus, rows: Fitted): Html {
  if (fleet.clusters.length === 0) return html``;
  return html`<section aria-labelledby="all"><h2 id="all">All clusters <small>${grouped(fleet.clusters.length)}</small></h2>
${
  fleet.clusters.length > FEW &&
  html`<form id="filter" role="search" hidden><label>Name <input id="filter-name" type="search" autocomplete="off" spellcheck="false"></label><label>Health <select id="filter-health"><option value="">any</option>${HEALTHS.map(
    (health) => html`<option value="${health}">${HEALTH_WORDS[health]}</option>`,
  )}</select></label><p id="filter-count" role="status" data-own=""></p></form>`
}
${table('glance', 'Table of all clusters', rows.markup)}${rows.left > 0 && html`<p class="soft">and ${grouped(rows.left)} more clusters: <code>kbctl status</code></p>`}</section>`;
}

function row(cluster: ClusterStatus, link: Child, nowMs: number): Html {
  const { health, apiServers, findings, mode, allocator } = cluster;
  const live = apiServers.filter(({ state }) => state === 'active').length;
  return html`<tr><th scope="row">${link}<td class="${health}">${HEALTH_WORDS[health]}<td>${findings.length}<td>${live}/${apiServers.length}<td>${lastPasses(cluster.loops, nowMs)}${fullest(cluster)}<td>${mode}<td>${allocator}`;
}

/** Returns the unhealthy loops, or the age of the last pass of any loop. */
function lastPasses(loops: readonly LoopStatus[], nowMs: number): string {
  for (const state of ['failing', 'late'] as const) {
    const count = loops.filter((loop) => loop.state === state).length;
    if (count > 0) return `${count} ${LOOP_STATES[state][1]}`;
  }
  const last = Math.max(...loops.map(({ lastPass, lastRanAtMs }) => lastRanAtMs ?? lastPass?.startedAtMs ?? 0));
  return last > 0 ? formatAge(nowMs - last) : 'never';
}

/** Returns a cell with a bar below its figure: its class is the use in twentieths. */
function fullest(cluster: ClusterStatus): Html {
  const [most] = wholeRanges(cluster).toSorted((one, other) => other.usedPercent - one.usedPercent);
  if (most === undefined) return html`<td>–`;
  const { used, capacity } = most;
  const twentieths = capacity === 0 ? 0 : Math.min(20, Math.ceil((20 * used) / capacity));
  return html`<td class="f${twentieths}">${percentage(used, capacity)}`;
}

/** Returns the clusters that need attention, with their problems and a link to their details. */
function needsAttention(fleet: FleetStatus, bytes: number, linked: (cluster: string) => Child): Fitted {
  const bad = fleet.clusters.filter(({ health }) => health === 'bad');
  const unreadable = upTo(fleet.unreadable, bytes / 3, unreadableCard);
  const fitted = upTo(bad, bytes - unreadable.bytes, (cluster) => card(cluster, linked(cluster.name)));
  const left = fitted.left + unreadable.left;
  const quiet = fleet.clusters.length === 0 ? 'There is no cluster in this table yet.' : 'Nothing right now.';
  const isQuiet = bad.length === 0 && fleet.unreadable.length === 0;
  const markup = html`<section aria-labelledby="needs"><h2 id="needs">Needs attention</h2>
${isQuiet && html`<p class="good calm">${quiet}</p>`}<div class="cards">${unreadable.markup}${fitted.markup}</div>${left > 0 && html`<p class="soft">and ${grouped(left)} more, in the table below and in <code>kbctl status</code></p>`}</section>`;
  return { markup, bytes: markup.bytes, left: fitted.left };
}

function card(cluster: ClusterStatus, link: Child): Html {
  const more = cluster.attention.length - MOST_OF_A_CLUSTER;
  return html`<article class="card"><h3>${link}</h3>${attentionList(cluster.attention.slice(0, MOST_OF_A_CLUSTER))}${more > 0 && html`<p class="soft">and ${counted(more, 'thing')} more in its details</p>`}</article>`;
}

function unreadableCard({ name: cluster, message }: FleetStatus['unreadable'][number]): Html {
  return html`<article class="card"><h3>${name(clipped(cluster, 80))}</h3><ul class="attention"><li><p class="bad">Its spec cannot be read: ${clipped(message)}</p><p class="next">Apply its spec again, or delete the cluster.</p></ul></article>`;
}

export interface ClusterPageOptions extends PageOptions {
  readonly atMs: number;
}

/** The link from the page of a cluster: its path begins with the key of the page, which no link repeats. */
export const TO_ALL_CLUSTERS: Html = html`<nav aria-label="Up"><a href="../">All clusters</a></nav>`;

/** The page of one cluster, with all its maps. */
export function renderClusterPage(cluster: ClusterStatus, options: ClusterPageOptions): string {
  const { atMs, live } = options;
  const { health } = cluster;
  return page({
    ...options,
    title: `${cluster.name}: ${HEALTH_WORDS[health]}`,
    heading: name(cluster.name),
    about: badge(health),
    summary: `${figuresOf(cluster)}.`,
    ...(live && { nav: TO_ALL_CLUSTERS }),
    main: html`<section aria-label="Details"><h2 class="sr">Details</h2><h3 class="sr">${cluster.name}</h3>${clusterDetails(cluster, atMs, ONLY_DETAILS_BYTES)}</section>`,
  });
}

export function renderMessagePage(
  title: string,
  message: string,
  options: PageOptions & { readonly nav?: Child },
): string {
  return page({
    ...options,
    title,
    heading: title,
    about: message,
    summary: '',
    main: '',
  });
}
