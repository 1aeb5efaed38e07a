import { type Child, type Html, html } from './html.ts';

/** A table that scrolls in itself where the screen is narrow; by keyboard too. */
export function scrollingTable(caption: string, headings: readonly string[], rows: Child): Html {
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table><caption>${caption}</caption><thead><tr>${headings.map(
    (heading) => html`<th scope="col">${heading}`,
  )}<tbody>${rows}</table></div>`;
}
