import type { Attention, ClusterStatus, FleetStatus } from '../../lib/status/cluster-status.ts';
import { clipped, upTo } from './budget.ts';
import { type Child, type Html, html, name } from './html.ts';
import { counted, grouped } from './words.ts';

const MOST_OF_A_CLUSTER = 4;

/** What somebody has to look at, with what to do about it. */
export function attentionList(attention: readonly Attention[]): Html | false {
  if (attention.length === 0) return false;
  return html`<ul class="attention">${attention.map(entry)}</ul>`;
}

function entry({ level, word, message, next }: Attention): Html {
  return html`<li><p class="${level === 'bad' ? 'bad' : 'warning'}">${clipped(message)}</p><p class="next">${clipped(next)} <code>kbctl explain ${clipped(word, 60)}</code></p>`;
}

/** First on the page: the clusters that need attention, what each has, and where its details are. */
export function needsAPerson(fleet: FleetStatus, bytes: number, linked: (cluster: string) => Child): Html {
  const bad = fleet.clusters.filter(({ health }) => health === 'bad');
  const unreadable = upTo(fleet.unreadable, bytes / 3, unreadableEntry);
  const fitted = upTo(bad, bytes - unreadable.bytes, (cluster) => card(cluster, linked(cluster.name)));
  const isQuiet = bad.length === 0 && fleet.unreadable.length === 0;
  const left = fitted.left + unreadable.left;
  return html`<section aria-labelledby="needs"><h2 id="needs">Needs attention</h2>
${isQuiet && html`<p class="good calm">${fleet.clusters.length === 0 ? 'There is no cluster in this table yet.' : 'Nothing right now.'}</p>`}<div class="cards">${unreadable.markup}${fitted.markup}</div>${left > 0 && html`<p class="soft">and ${grouped(left)} more, in the table below and in <code>kbctl status</code></p>`}</section>`;
}

function card(cluster: ClusterStatus, link: Child): Html {
  const bad = cluster.attention.filter(({ level }) => level === 'bad');
  const shown = (bad.length > 0 ? bad : cluster.attention).slice(0, MOST_OF_A_CLUSTER);
  const more = cluster.attention.length - shown.length;
  return html`<article class="card"><h3>${link}</h3>${attentionList(shown)}${more > 0 && html`<p class="soft">and ${counted(more, 'thing')} more in its details</p>`}</article>`;
}

function unreadableEntry({ name: cluster, message }: FleetStatus['unreadable'][number]): Html {
  return html`<article class="card"><h3>${name(clipped(cluster, 80))}</h3><ul class="attention"><li><p class="bad">Its registration cannot be read: ${clipped(message)}</p><p class="next">Apply its spec again, or remove the cluster.</p></ul></article>`;
}
