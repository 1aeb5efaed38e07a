import {
  type Attention,
  type ClusterStatus,
  type FleetStatus,
  HEALTHS,
  type Health,
} from '../status/cluster-status.ts';
import {
  apiServerColumns,
  findingColumns,
  fleetColumns,
  holdColumns,
  holdRows,
  loopColumns,
  RANGE_COLUMNS,
} from '../status/columns.ts';
import { allFindingsCommand, changeLines, headline, pauseLines, withheldLines } from '../status/status-lines.ts';
import type { Column } from '../text-table.ts';
import { type Child, clipped, firstOf, type Html, html, shownOf, table } from './html.ts';
import { type PageOptions, page } from './page-frame.ts';
import { rangeMap } from './range-map.ts';

const MOST_CARDS = 50;
const MOST_CLUSTERS = 1_000;
const MOST_ROWS = 100;
const MOST_PROBLEMS = 20;
const MOST_OF_A_CARD = 4;

type Link = ((cluster: ClusterStatus) => string) | undefined;

/** Returns the page of all clusters. On a live page, the name of each cluster links to the page of the cluster. */
export function renderFleetPage(fleet: FleetStatus, options: PageOptions = {}): string {
  const { clusters, unreadable, atMs, pausedAll } = fleet;
  const unhealthy = clusters.filter(({ health }) => health === 'unhealthy');
  const count = unhealthy.length + unreadable.length;
  const link: Link = options.live && (({ name }) => `clusters/${encodeURIComponent(name.toWellFormed())}`);
  const [name, health, ...others] = fleetColumns(atMs);
  const columns = [name, health, ...others.slice(-1), ...others.slice(0, -1)].filter((column) => column !== undefined);
  const rows = (shown: readonly ClusterStatus[]) => table(shown, { caption: 'Table of all clusters', columns, link });
  return page({
    ...options,
    title: `${count === 0 ? 'Clusters' : `${count} of ${clusters.length + unreadable.length} need attention`} – ${clipped(fleet.table, 100)}`,
    heading: 'Clusters',
    about: html`Table ${clipped(fleet.table, 260)}`,
    summary: summaryOf(fleet),
    atMs,
    isFiltered: clusters.length > 1,
    main: [
      pausedAll && section('Pause', pauseLines({ paused: { ...pausedAll, all: true } }, atMs).map(paragraph)),
      section('Needs attention', [
        count === 0 && html`<p>Nothing right now.</p>`,
        firstOf(unreadable, MOST_CARDS, (shown) => shown.map((one) => unreadableCard(one, count))),
        firstOf(unhealthy, MOST_CARDS, (shown) => shown.map((cluster) => clusterCard(cluster, count, link))),
      ]),
      clusters.length > 0 && section('All clusters', firstOf(clusters, MOST_CLUSTERS, rows), 'all'),
    ],
  });
}

function summaryOf({ clusters, unreadable }: FleetStatus): string {
  const total = clusters.length + unreadable.length;
  if (total === 0) return 'No cluster is registered.';
  const countOf = (health: Health) => clusters.filter((cluster) => cluster.health === health).length;
  const parts = HEALTHS.flatMap((health) => (countOf(health) > 0 ? `${countOf(health)} ${health}` : []));
  if (unreadable.length > 0) parts.push(`${unreadable.length} unreadable`);
  return `${total} ${total === 1 ? 'cluster' : 'clusters'}: ${parts.join(', ')}.`;
}

function clusterCard(cluster: ClusterStatus, count: number, link: Link): Html {
  const { name, loops } = cluster;
  const attention = cluster.attention.filter(({ level }) => level === 'unhealthy');
  const failing = loops.filter(({ state }) => state === 'failing' || state === 'late').map(({ loop }) => loop);
  return card({ name, attention, failing, count }, [
    firstOf(attention, MOST_OF_A_CARD, attentionList, `kbctl status ${name}`),
    link && html`<p class="soft"><a href="${link(cluster)}">Page of ${clipped(name, 80)}</a></p>`,
  ]);
}

function unreadableCard({ name, message }: FleetStatus['unreadable'][number], count: number): Html {
  const next = 'Apply its spec again, or delete the cluster.';
  const problem = {
    level: 'unhealthy',
    word: 'Corrupt',
    message: `Its spec cannot be read: ${message}`,
    next,
  } as const;
  return card({ name, attention: [problem], failing: [], count }, attentionList([problem]));
}

interface CardLine extends Pick<ClusterStatus, 'name' | 'attention'> {
  readonly failing: readonly string[];
  /** The number of cards on the page. If there are fewer than four, they are unfolded. */
  readonly count: number;
}

/**
 * Returns a card: a line with the cluster's name, the word of each problem (as in `kbctl explain WORD`), and its failing loops;
 * below, the `problems`.
 */
function card({ name, attention, failing, count }: CardLine, problems: Child): Html {
  const words = clipped([...new Set(attention.map(({ word }) => word))].join(', '), 100);
  return html`<details class="card" data-key="${clipped(name, 100)}"${count < 4 && html` open`}><summary><b class="unhealthy" title="${clipped(name)}">${clipped(name, 80)}</b> <span>${words}</span> <span class="soft">${failing.join(', ')}</span></summary>${problems}</details>`;
}

function attentionList(attention: readonly Attention[]): Html {
  return html`<ul class="attention">${attention.map(
    ({ level, word, message, next }) =>
      html`<li><p class="${level}">${clipped(message)}</p><p class="soft">${clipped(next)} <code>kbctl explain ${clipped(word, 60)}</code></p>`,
  )}</ul>`;
}

export function renderClusterPage(cluster: ClusterStatus, options: PageOptions & { readonly atMs: number }): string {
  const { name, health, attention, apiServers, loops, ranges, findings, findingTotal } = cluster;
  const { atMs } = options;
  const ofLevel = (level: Attention['level']) => attention.filter((one) => one.level === level);
  const part = <Item>(
    title: string,
    all: readonly Item[],
    render: (shown: readonly Item[]) => Child,
    most = MOST_ROWS,
  ) => all.length > 0 && section(title, firstOf(all, most, render, `kbctl status ${name} -o yaml`));
  const list = (title: string, lines: readonly string[]) =>
    part(title, lines, (shown) => html`<ul>${shown.map((line) => html`<li>${clipped(line)}`)}</ul>`);
  const rows = <Row>(title: string, columns: readonly Column<Row>[], all: readonly Row[], total = all.length) => [
    part(title, all, (shown) => table(shown, { caption: `${title} of ${name}`, columns })),
    total > all.length && shownOf(all.length, total, allFindingsCommand(cluster)),
  ];
  return page({
    ...options,
    title: `${name}: ${health}`,
    heading: name,
    about: headline(cluster),
    summary: `Health: ${health}`,
    isOne: true,
    atMs,
    main: [
      pauseLines(cluster, atMs).map(paragraph),
      part('Needs attention', ofLevel('unhealthy'), attentionList, MOST_PROBLEMS),
      part('Warnings', ofLevel('warning'), attentionList, MOST_PROBLEMS),
      rows('API servers', apiServerColumns(atMs), apiServers),
      rows('Loops', loopColumns(atMs), loops),
      list('Would write', withheldLines(loops)),
      list('Last changes', changeLines(loops, atMs)),
      rows('Ranges', RANGE_COLUMNS, ranges),
      html`<div class="maps">${ranges.map((range) => range.map && rangeMap(range, range.map))}</div>`,
      rows('Holds', holdColumns(atMs), holdRows(cluster)),
      rows('Findings', findingColumns(atMs), findings, findingTotal),
    ],
  });
}

function paragraph(text: string): Html {
  return html`<p>${clipped(text)}</p>`;
}

function section(title: string, content: Child, id = ''): Html {
  return html`<section${id !== '' && html` id="${id}"`}><h2>${title}</h2>${content}</section>`;
}
