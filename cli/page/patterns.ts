import { type Html, html } from './html.ts';
import type { CellLook } from './map-layout.ts';

const CELL = html`x=".06" y=".06" width=".88" height=".88" rx=".14"`;
const level = (height: number) =>
  html`<rect class="F" ${CELL}/><rect class="U" x=".06" y="${0.94 - height}" width=".88" height="${height}" rx=".1"/>`;

/**
 * How a cell of each look is drawn, 1 by 1: a colour, and a mark in it that is told without the colour. One for the whole
 * page; a map only strokes with them.
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

/** Stands once in a page. Strokes run along the middle of a row, so tiles begin half a cell above it. */
export const PATTERNS: Html = html`<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>${Object.entries(
  DRAWINGS,
).map(
  ([look, drawing]) =>
    html`<pattern id="p${look}" patternUnits="userSpaceOnUse" y="-.5" width="1" height="1">${drawing}</pattern>`,
)}</defs></svg>`;
