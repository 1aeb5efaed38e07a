import type { ClusterStatus, LoopStatus } from '../../lib/status/cluster-status.ts';
import { isOneOfMany } from '../../lib/status/loop-status.ts';
import { clipped } from './budget.ts';
import { loopBadge } from './health.ts';
import { type Child, type Html, html } from './html.ts';
import { scrollingTable } from './scrolling-table.ts';
import { grouped, span, timeOf, when } from './words.ts';

const HEADINGS = ['Loop', 'State', 'Last pass', 'Took', 'Counted', 'Failures in a row', 'Last success'];
const MOST_COUNTS = 8;
const FEW_COUNTS = 4;

/** The four loops with their last passes. */
export function loopsSection(cluster: ClusterStatus, nowMs: number): Html {
  const rows = cluster.loops.map((loop) => [row(loop, nowMs), errorRow(loop)]);
  return html`<section><h4>Loops</h4>${scrollingTable(`Loops of ${cluster.name}`, HEADINGS, rows)}</section>`;
}

function row(status: LoopStatus, nowMs: number): Html {
  const { loop, state, intervalSeconds, lastPass, failuresInARow, lastSuccessAtMs } = status;
  const whenIt = (atMs: number) =>
    isOneOfMany(status, nowMs) ? timeOf(atMs, 'within the last minute') : when(atMs, nowMs);
  return html`<tr><th scope="row">${loop} <small>every ${span(intervalSeconds * 1_000)}</small><td>${loopBadge(state)}<td>${lastPass === undefined ? '–' : [whenIt(lastPass.startedAtMs), ` ${lastPass.outcome}`, lastPass.mode === 'observe' && ', observed']}<td>${lastPass === undefined ? '–' : duration(lastPass.durationMs)}<td class="long">${counts(lastPass)}<td>${failuresInARow}<td>${lastSuccessAtMs === undefined ? '–' : whenIt(lastSuccessAtMs)}`;
}

function errorRow({ lastPass }: LoopStatus): Child {
  if (lastPass?.error === undefined) return undefined;
  const { code, message } = lastPass.error;
  return html`<tr class="error"><td colspan="7"><code>${clipped(code, 60)}</code> ${clipped(message)}`;
}

/** Where there are many, those that are 0 say nothing. */
function counts(lastPass: LoopStatus['lastPass']): string {
  const all = Object.entries(lastPass?.counts ?? {});
  const told = all.length > FEW_COUNTS ? all.filter(([, count]) => count !== 0) : all;
  return (
    told
      .slice(0, MOST_COUNTS)
      .map(([what, count]) => `${spaced(clipped(what, 40))} ${grouped(count)}`)
      .join(', ') || '–'
  );
}

/** `mayHaveLeaked` as words. */
function spaced(identifier: string): string {
  return identifier.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
