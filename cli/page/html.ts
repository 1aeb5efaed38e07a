import { percentText } from '../status/columns.ts';
import type { Column } from '../text-table.ts';

/** A value in a template: text is escaped, markup is kept, `undefined` and `false` are empty. */
export type Child = Html | string | number | false | undefined | readonly Child[];

export class Html {
  readonly #markup: string;

  /** Does not escape the markup. For markup with values, use the tag `html`. */
  constructor(markup: string) {
    this.#markup = markup;
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

/** Escapes text for HTML. An invisible character becomes a number such as `\u{202e}`, half of a surrogate pair becomes U+FFFD. */
function escapeText(text: string): string {
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

export function clipped(text: string, characters = 600): string {
  if (text.length <= characters) return text;
  return `${text.slice(0, characters).replace(/[\ud800-\udbff]$/, '')}…`;
}

export function firstOf<T>(
  items: readonly T[],
  most: number,
  render: (items: readonly T[]) => Child,
  rest = 'kbctl status',
): Child {
  return [render(items.slice(0, most)), items.length > most && shownOf(most, items.length, rest)];
}

export function shownOf(shown: number, all: number, command: string): Html {
  return html`<p class="soft">${shown} of ${all}; all of them: <code>${command}</code></p>`;
}

export interface HtmlTableOptions<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Returns the URL of a row's page. If this function is absent, the first cell is not a link. */
  readonly link?: ((row: Row) => string) | undefined;
}

/** Returns the HTML of a table that kbctl also prints on a terminal. A table wider than the page gets a scroll bar of its own. */
export function table<Row>(rows: readonly Row[], { caption, columns, link }: HtmlTableOptions<Row>): Html {
  const cell = (column: Column<Row>, row: Row) => {
    const { text, tone, percent, shrinks } = column;
    const content = percent === undefined ? clipped(text(row)) : meter(percent(row));
    return html`<td${shrinks && html` class="wraps"`}><span class="${tone?.(row) ?? ''}">${content}</span>`;
  };
  const head = (row: Row) => {
    const name = clipped(columns[0]?.text(row) ?? '');
    return html`<th scope="row" title="${name}">${link === undefined ? name : html`<a href="${link(row)}">${name}</a>`}`;
  };
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table><caption>${caption}</caption><thead><tr>${columns.map(
    ({ title }) => html`<th scope="col">${title}`,
  )}<tbody>${rows.map((row) => html`<tr>${head(row)}${columns.slice(1).map((column) => cell(column, row))}`)}</table></div>`;
}

function meter(percent: number | undefined): Child {
  if (percent === undefined) return undefined;
  const text = percentText(percent);
  return html`<meter max="100" high="80" optimum="0" value="${percent}" aria-label="${text} in use"></meter> ${text}`;
}
