/** A value in a template: text is escaped, markup is kept, `undefined` and `false` are empty. */
export type Child = Html | string | number | false | undefined | readonly Child[];

/** Markup in which all text is escaped. */
export class Html {
  readonly #markup: string;

  /** Trusts its argument: use `html` instead. */
  constructor(markup: string) {
    this.#markup = markup;
  }

  get bytes(): number {
    return Buffer.byteLength(this.#markup);
  }

  toString(): string {
    return this.#markup;
  }
}

/** The tag of all templates of the page. It escapes values; attributes must have quotes. */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Html {
  let markup = strings[0] ?? '';
  for (const [index, child] of children.entries()) {
    if (strings[index]?.endsWith('=')) throw new TypeError(`an attribute without quotes: ${strings[index]}`);
    markup += markupOf(child) + (strings[index + 1] ?? '');
  }
  return new Html(markup);
}

/** A name whose writing direction does not change the text around it. */
export function name(text: string): Html {
  return html`<bdi>${text}</bdi>`;
}

const SPECIAL = /[&<>"'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/** Escapes text, with the numbers of invisible characters (`\u{202e}`), and U+FFFD for half a character. */
export function escapeText(text: string): string {
  return text
    .toWellFormed()
    .replace(SPECIAL, (special) => ENTITIES.get(special) ?? `\\u{${special.codePointAt(0)?.toString(16)}}`);
}

function markupOf(child: Child): string {
  if (child === undefined || child === false) return '';
  if (child instanceof Html) return child.toString();
  if (typeof child === 'object') return child.map(markupOf).join('');
  return escapeText(String(child));
}

/** The items that fitted, and the number of the others. */
export interface Fitted {
  readonly markup: Html;
  readonly bytes: number;
  readonly left: number;
}

/** Renders as many items as fit into `bytes`. */
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

/** Returns at most so much of a text from a table or an API server. */
export function clipped(text: string, characters = 600): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** Headings of the tables, by their class. On a narrow screen the style sheet shows each beside its value. */
export const HEADINGS = {
  glance: ['Cluster', 'Health', 'Findings', 'API servers', 'Last pass', 'Fullest range', 'Mode', 'Allocator'],
  servers: ['Address', 'Lease', 'Expires', 'Refreshed', 'Last probe', 'Kind'],
  loops: ['Loop', 'State', 'Last pass', 'Took', 'Findings', 'Failures in a row', 'Last success'],
  findings: ['Service', 'Item', 'Reason', 'Seen'],
} as const;

/** A table that scrolls by itself if it is wider than the page, also by keyboard. */
export function table(kind: keyof typeof HEADINGS, caption: string, rows: Child): Html {
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table class="${kind}"><caption>${caption}</caption><thead><tr>${HEADINGS[
    kind
  ].map((heading) => html`<th scope="col">${heading}`)}<tbody>${rows}</table></div>`;
}
