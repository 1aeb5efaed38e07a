import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { clipped, firstOf, html } from '../../../cli/page/html.ts';
import { PAGE_CSS } from '../../../cli/page/page-css.ts';
import { anyText } from '../../support/properties.ts';

const unit = fc.constantFrom('<', '>', '"', "'", '&', '=', '/', ' ', '\n', '-', '!', 'a', 'script', '\u202e', '\0');
const markup = fc.oneof(
  anyText(),
  fc.string({ unit }),
  fc.uint16Array().map((units) => String.fromCharCode(...units)),
);

test.each([
  ['markup', '<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
  ['quotes', `" onclick='x'`, '&quot; onclick=&#39;x&#39;'],
  ['an entity', '&lt;', '&amp;lt;'],
  ['a character that reverses the direction of text', 'a\u202eb', 'a\\u{202e}b'],
  ['a control character', 'a\0b\u0085', 'a\\u{0}b\\u{85}'],
  ['a line break', 'a\nb', 'a\\nb'],
  ['half of a surrogate pair', 'a\ud800b', 'a\ufffdb'],
  ['letters of any script', 'čaj 茶 🍵', 'čaj 茶 🍵'],
])('a value with %s is shown as text', (_, text, markup) => {
  expect(String(html`<p>${text}</p>`)).toBe(`<p>${markup}</p>`);
});

test('every invisible character of a value becomes visible', () => {
  fc.assert(fc.property(markup, (text) => !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(String(html`${text}`))));
});

test('a template within a template is not escaped again, and absent values add no text', () => {
  expect(String(html`<ul>${[html`<li>1`, false, undefined, html`<li>${2}`]}</ul>`)).toBe('<ul><li>1<li>2</ul>');
});

test('an attribute without quotes is an error', () => {
  expect(() => html`<p title=${'x'}>`).toThrow('an attribute without quotes: <p title=');
});

test('a long text is not cut within a character', () => {
  expect(clipped('a🍵b', 2)).toBe('a…');
  expect(clipped('short')).toBe('short');
});

test('a long list is cut, and shows the number of the other entries and the command that prints them', () => {
  const list = (items: readonly number[]) => html`${firstOf(items, 2, (shown) => shown.join(), 'kbctl get runs')}`;
  expect(String(list([1, 2]))).toBe('1,2');
  expect(String(list([1, 2, 3]))).toBe('1,2<p class="soft">2 of 3; all of them: <code>kbctl get runs</code></p>');
});

type Colours = Readonly<Record<string, string>>;

const [LIGHT = {}, DARK = {}] = [...PAGE_CSS.matchAll(/:root\{(.*?)\}/gs)].map(
  ([, declarations = '']): Colours =>
    Object.fromEntries([...declarations.matchAll(/--(\w+):(#\w+)/g)].map(([, name, colour]) => [name, colour])),
);

/** Returns the contrast of two colours as WCAG 2 defines it. */
function contrast(one = '', other = ''): number {
  const [lighter = 0, darker = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(colour: string): number {
  const hex = colour.length === 4 ? colour.replace(/[\da-f]/g, '$&$&') : colour;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((share) => (share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test.each([
  ['light', LIGHT],
  ['dark', DARK],
])('in the %s colours, text can be read, and cells, marks and edges stand out', (_, colours) => {
  const on = (grounds: readonly string[], names: readonly string[]) =>
    names.flatMap((name) => grounds.map((ground) => contrast(colours[name], colours[ground])));
  const texts = ['ink', 'soft', 'link', 'unhealthy', 'warning', 'unknown', 'paused', 'good'];
  expect(Math.min(...on(['bg', 'card'], texts))).toBeGreaterThanOrEqual(4.5);
  const shapes = [
    ...on(['bg', 'card'], ['edge', 'focus']),
    ...on(['free'], ['used', 'dup', 'leak', 'held', 'band']),
    ...on(['used', 'dup', 'leak', 'held'], ['mark']),
  ];
  expect(Math.min(...shapes)).toBeGreaterThanOrEqual(3);
});

test('the style sheet loads no other resource', () => {
  expect(PAGE_CSS).not.toMatch(/@import|url\((?!"data:|%23)|<\/style/);
});
