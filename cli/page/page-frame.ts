import { createHash } from 'node:crypto';
import { type Child, clipped, type Html, html, Html as Markup } from './html.ts';
import type { CellLook } from './map-layout.ts';
import { PAGE_CSS } from './page-css.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { timeOf } from './words.ts';

export interface PageOptions {
  /** How often the page refreshes. Absent: it is a file. */
  readonly live?: { readonly pollMs: number };
  /** The time since which the table cannot be read. */
  readonly trouble?: { readonly message: string; readonly sinceMs: number };
}

export interface PageParts extends PageOptions {
  readonly title: string;
  readonly heading: Child;
  /** The line below the heading. */
  readonly about: Child;
  /** One sentence without ages: a screen reader announces each change. */
  readonly summary: string;
  readonly atMs?: number;
  readonly nav?: Child;
  readonly main: Child;
}

/** Returns a policy that lets the page load only itself, and run only its own style and script. */
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

export function page(parts: PageParts): string {
  const { title, heading, about, summary, nav, main, live } = parts;
  return String(html`<!doctype html>
<html lang="en"${live && html` data-live="${live.pollMs}"`}>
<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy(live !== undefined)}">
<title>${title}</title><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,"><style>${trusted(PAGE_CSS)}</style></head>
<body><a class="skip" href="#main">Skip to the clusters</a>${PATTERNS}
<div id="page"><header>${nav}<div class="title"><h1>${heading}</h1>${live && html`<p id="live" role="status" data-own="">Live</p>`}</div><p class="soft">${about}${asOf(parts)}</p><p id="summary">${summary}</p>${troubleBanner(parts)}</header>
<main id="main" tabindex="-1">${main}</main></div>
<footer><p>This page is read-only. The same on a terminal: <code>kbctl status</code></p></footer><p id="news" class="sr" role="status"></p><script>${trusted(PAGE_SCRIPT)}</script></body></html>
`);
}

function asOf({ atMs }: PageParts): Html | false {
  if (atMs === undefined) return false;
  return html`, read ${timeOf(atMs)}`;
}

function troubleBanner({ trouble, atMs }: PageParts): Html | false {
  if (trouble === undefined) return false;
  const shown = atMs !== undefined && '; the page shows the last result';
  return html`<p class="banner" role="alert"><b class="bad">The table cannot be read</b> since ${timeOf(trouble.sinceMs)}${shown}: ${clipped(trouble.message)}</p>`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Our own style and script, unescaped. */
function trusted(text: string): Markup {
  return new Markup(text);
}

const CELL = html`x=".06" y=".06" width=".88" height=".88" rx=".14"`;
const level = (height: number) =>
  html`<rect class="F" ${CELL}/><rect class="U" x=".06" y="${0.94 - height}" width=".88" height="${height}" rx=".1"/>`;

/**
 * How a cell of each look is drawn, 1 by 1: a colour, and a mark for colour-blind readers. Defined once per page; maps
 * only draw strokes with them.
 */
const DRAWINGS = {
  D: html`<rect class="D" ${CELL}/><path class="mark" d="M.28 .28L.72 .72M.72 .28L.28 .72"/>`,
  L: html`<rect class="L" ${CELL}/><path class="mark" d="M.1 .9L.9 .1"/>`,
  H: html`<rect class="H" ${CELL}/><circle class="dot" cx=".5" cy=".5" r=".17"/>`,
  U: html`<rect class="U" ${CELL}/>`,
  U1: level(0.22),
  U2: level(0.44),
  U3: level(0.66),
  U4: level(0.88),
  R: html`<rect class="F" ${CELL}/><circle class="R" cx=".5" cy=".5" r=".13"/>`,
  F: html`<rect class="F" ${CELL}/>`,
  X: html`<path class="X" d="M.3 .7L.7 .3"/>`,
} as const satisfies Record<CellLook, Html>;

/** Once per page. Strokes run along the middle of a row, so tiles begin half a cell above it. */
const PATTERNS: Html = html`<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>${Object.entries(
  DRAWINGS,
).map(
  ([look, drawing]) =>
    html`<pattern id="p${look}" patternUnits="userSpaceOnUse" y="-.5" width="1" height="1">${drawing}</pattern>`,
)}</defs></svg>`;
