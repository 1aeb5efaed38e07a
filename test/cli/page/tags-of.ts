const TAG = /<(\/?[a-zA-Z!][\w-]*)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*\/?>/y;

/**
 * Returns each tag of a page with the names of its attributes, without style and script.
 * @throws if a `<` does not begin a tag whose attributes are all in quotes
 */
export function tagsOf(page: string): string[] {
  const markup = page.replace(/<(style|script)>.*?<\/\1>/gs, '<$1></$1>');
  const tags: string[] = [];
  for (let at = markup.indexOf('<'); at >= 0; at = markup.indexOf('<', TAG.lastIndex)) {
    TAG.lastIndex = at;
    const [, tag, attributes = ''] = TAG.exec(markup) ?? [];
    if (tag === undefined) throw new Error(`no tag: ${markup.slice(at, at + 60)}`);
    tags.push([tag, ...[...attributes.matchAll(/([\w:-]+)(?:="[^"]*")?/g)].map(([, name]) => name)].join(' '));
  }
  return tags;
}
