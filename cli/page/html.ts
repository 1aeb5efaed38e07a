/** What may stand in a template: text is escaped, markup stands as it is, `undefined` and `false` are nothing. */
export type Child = Html | string | number | false | undefined | readonly Child[];

/** Markup. Only this file makes it, so that all text in it was escaped. */
export class Html {
  readonly #markup: string;

  /** Use `html` instead: this trusts what it is given. */
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

/** The tag of every template of the page. What is filled in is escaped; an attribute's value is always in quotes. */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Html {
  let markup = strings[0] ?? '';
  for (const [index, child] of children.entries()) {
    if (strings[index]?.endsWith('=')) throw new TypeError(`an attribute without quotes: ${strings[index]}`);
    markup += markupOf(child) + (strings[index + 1] ?? '');
  }
  return new Html(markup);
}

/** A name from elsewhere, kept from turning the text around it: its direction is its own. */
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

/** What cannot be seen, or turns text around, is shown by its number (`\u{202e}`); half a character as U+FFFD. */
export function escapeText(text: string): string {
  return text.toWellFormed().replace(SPECIAL, (special) => ENTITIES.get(special) ?? numbered(special));
}

function numbered(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

function markupOf(child: Child): string {
  if (child === undefined || child === false) return '';
  if (child instanceof Html) return child.toString();
  if (typeof child === 'object') return child.map(markupOf).join('');
  return escapeText(String(child));
}
