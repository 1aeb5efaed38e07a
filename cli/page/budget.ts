import { type Html, html } from './html.ts';

/** As many as there was room for, in order, and how many were left out. */
export interface Fitted {
  readonly markup: Html;
  readonly bytes: number;
  readonly left: number;
}

/** Renders one after the other until the next would not fit into `bytes`. */
export function upTo<T>(items: readonly T[], bytes: number, render: (item: T) => Html): Fitted {
  const rendered: Html[] = [];
  let used = 0;
  for (const item of items) {
    const markup = render(item);
    if (used + markup.bytes > bytes) break;
    used += markup.bytes;
    rendered.push(markup);
  }
  return { markup: html`${rendered}`, bytes: used, left: items.length - rendered.length };
}

/** Text that a table or an API server made, cut where nobody reads on. */
export function clipped(text: string, characters = 600): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')}…`;
}
