const MAX_ENTRIES = 20;

/** The entries of a field of a log line: absent rather than empty, and never so many that the line is cut elsewhere. */
export function someOf(all: readonly string[] | undefined): readonly string[] | undefined {
  if (all === undefined || all.length === 0) return undefined;
  if (all.length <= MAX_ENTRIES) return all;
  return [...all.slice(0, MAX_ENTRIES), `and ${all.length - MAX_ENTRIES} more`];
}
