import { describe, expect, test } from '@jest/globals';
import { PAGE_CSS } from '../../../cli/page/page-css.ts';

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

describe.each([
  ['light', LIGHT],
  ['dark', DARK],
])('the %s colours', (_, colours) => {
  test.each(['ink', 'soft', 'link', 'unhealthy', 'warning', 'unknown', 'paused', 'good'])(
    'text in the colour %s has enough contrast to be read',
    (text) => {
      for (const ground of ['bg', 'card']) expect(contrast(colours[text], colours[ground])).toBeGreaterThanOrEqual(4.5);
    },
  );

  test.each(['used', 'dup', 'leak', 'held', 'band'])(
    'a cell in the colour %s stands out from free cells of a map',
    (state) => {
      expect(contrast(colours[state], colours['free'])).toBeGreaterThanOrEqual(3);
    },
  );

  test.each(['used', 'dup', 'leak', 'held'])('the mark in a cell of the colour %s stands out', (state) => {
    expect(contrast(colours['mark'], colours[state])).toBeGreaterThanOrEqual(3);
  });

  test.each(['edge', 'focus'])('the %s of controls stands out from its background', (line) => {
    for (const ground of ['bg', 'card']) expect(contrast(colours[line], colours[ground])).toBeGreaterThanOrEqual(3);
  });
});

test('the style sheet loads nothing', () => {
  expect(PAGE_CSS).not.toMatch(/@import|url\((?!"data:|%23)|<\/style/);
});
