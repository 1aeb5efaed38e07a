/** Returns a page with a table below each line `<!-- table: name -->`. */
export function withTables(page: string, rowsOf: (name: string) => readonly string[]): string {
  return page.replaceAll(
    /(<!-- table: (.+) -->\n)\n(?:\|.*\n)*/g,
    (_, mark: string, name: string) => `${mark}\n${rowsOf(name).join('\n')}\n`,
  );
}
