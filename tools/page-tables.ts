/** Returns a page with a table below each line `<!-- table: name -->`. */
export function withTables(page: string, rowsOf: (name: string) => readonly string[]): string {
  return page.replaceAll(
    /(<!-- table: (.+) -->\n)\n(?:\|.*\n)*/g,
    (_, mark: string, name: string) => `${mark}\n${rowsOf(name).join('\n')}\n`,
  );
}

/** Returns a page with each figure behind its text, a regular expression. @throws Error for a text that the page lacks */
export function withFigures(page: string, figures: readonly (readonly [before: string, figure: string])[]): string {
  return figures.reduce((text, [before, figure]) => {
    const place = new RegExp(`(?<=${before})[\\d.-]*\\d`);
    if (!place.test(text)) throw new Error(`The page has no figure behind: ${before}`);
    return text.replace(place, figure);
  }, page);
}
