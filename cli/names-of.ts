const MOST_NAMES = 10;

/** The first of them, and how many more there are. */
export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
