import { hash } from 'node:crypto';
import { HEALTHS } from '../status/cluster-status.ts';
import { type Child, Html, html } from './html.ts';
import { PAGE_CSS } from './page-css.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PATTERNS } from './range-map.ts';

export interface PageOptions {
  /** The interval at which the page refreshes. Absent if the page is a file. */
  readonly live?: { readonly pollMs: number };
}

export interface PageParts extends PageOptions {
  readonly title: string;
  readonly heading: string;
  readonly about: Child;
  /** The status in one sentence. It contains no ages, because a screen reader announces each change of the sentence. */
  readonly summary: string;
  readonly atMs: number;
  readonly isOne?: boolean;
  /** True if the page has controls to filter and order the clusters, and a link to the list of all clusters. */
  readonly isFiltered?: boolean;
  readonly main: Child;
}

/** Returns a policy that allows only the page's own style and script, `data:` images, and the refreshes of a live page. */
export function contentSecurityPolicy(live: boolean): string {
  return [
    "default-src 'none'",
    `style-src '${hashOf(PAGE_CSS)}'`,
    `script-src '${hashOf(PAGE_SCRIPT)}'`,
    'img-src data:',
    `connect-src ${live ? "'self'" : "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

export function page({ title, heading, about, summary, atMs, isOne, isFiltered, main, live }: PageParts): string {
  const atTime = new Date(atMs).toISOString().slice(0, 19);
  return String(html`<!doctype html>
<html lang="en"${live && html` data-live="${live.pollMs}"`}>
<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy(live !== undefined)}">
<title>${title}</title><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,"><style>${new Html(PAGE_CSS)}</style></head>
<body>${PATTERNS}<header>${live && isOne && TO_ALL_CLUSTERS}<h1>${heading}</h1>${live && html`<p id="live" role="status">Live</p>`}${isFiltered && FILTER}</header>
<main><p class="soft">${about}, read ${atTime}Z</p><p id="summary">${summary}</p>${isFiltered && html`<p class="jump"><a href="#all">All clusters</a></p>`}${main}</main>
<footer><p>This page is read-only. The same on a terminal: <code>kbctl status</code></p></footer><p id="news" class="sr" role="status"></p><script>${new Html(PAGE_SCRIPT)}</script></body></html>
`);
}

/** The link is relative, so that it does not contain the key at the beginning of the path. */
const TO_ALL_CLUSTERS = html`<nav aria-label="Up"><a href="../">All clusters</a></nav>`;

/** The filter is outside of the content that a refresh replaces. The filter is hidden where scripts do not run. */
const FILTER = html`<form id="filter" role="search" hidden><label>Filter <input name="text" type="search" autocomplete="off" placeholder="name, loop or code"></label> <label>Health <select name="health"><option value="">all${HEALTHS.map((health) => html`<option>${health}`)}</select></label> <label>Order <select name="order"><option>severity<option>name</select></label> <output class="soft"></output></form>`;

function hashOf(text: string): string {
  return `sha256-${hash('sha256', text, 'base64')}`;
}
