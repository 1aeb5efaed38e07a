import { isoTime } from '../lib/cluster/values.ts';

/** Matches fields that are times, such as `expiresAtMs` and `untilMs`, but not `durationMs`. */
const TIME = /^(.*(?:[aA]t|[uU]ntil))Ms$/;

/**
 * Returns a value for `-o json` and `-o yaml`. A time is ISO 8601 text in UTC and its name has no `Ms`; ranges have no
 * `map`.
 */
export function plainOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([field, content]: [string, unknown]) => {
      if (content === undefined || field === 'map') return [];
      // The fields in `counts` keep their names.
      if (field === 'counts') return [[field, content]];
      const [, time] = TIME.exec(field) ?? [];
      if (time !== undefined && typeof content === 'number') return [[time, isoTime(content)]];
      return [[field, plainOf(content)]];
    }),
  );
}
