import type { ClusterStatus, FleetStatus } from './cluster-status.ts';

/**
 * A status as `-o json` and `-o yaml` give it. The field names are those of ClusterStatus, and they stay, with two
 * differences: a time is ISO 8601 text in UTC and its name has no `Ms` (`expiresAt`, `until`, `savedAt`; `durationMs` is
 * no time and stays), and ranges have no `map`.
 */
export type StatusJson = Json<ClusterStatus>;
/** The same for all clusters of a table. */
export type FleetJson = Json<FleetStatus>;

type TimeField =
  | 'atMs'
  | 'untilMs'
  | 'expiresAtMs'
  | 'refreshedAtMs'
  | 'withdrawnUntilMs'
  | 'startedAtMs'
  | 'lastRanAtMs'
  | 'lastSuccessAtMs'
  | 'savedAtMs'
  | 'seenAtMs';

type Json<T> = T extends readonly (infer Element)[]
  ? readonly Json<Element>[]
  : T extends object
    ? {
        readonly [Field in keyof T as Field extends 'map' ? never : FieldName<Field>]: Field extends TimeField
          ? string
          : Field extends 'counts'
            ? T[Field]
            : Json<T[Field]>;
      }
    : T;
type FieldName<Field> = Field extends TimeField ? (Field extends `${infer Name}Ms` ? Name : never) : Field;

const TIMES: ReadonlySet<string> = new Set<TimeField>([
  'atMs',
  'untilMs',
  'expiresAtMs',
  'refreshedAtMs',
  'withdrawnUntilMs',
  'startedAtMs',
  'lastRanAtMs',
  'lastSuccessAtMs',
  'savedAtMs',
  'seenAtMs',
]);

export function statusJson(status: ClusterStatus): StatusJson {
  return jsonOf(status) as StatusJson;
}

export function fleetJson(fleet: FleetStatus): FleetJson {
  return jsonOf(fleet) as FleetJson;
}

function jsonOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(jsonOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([field, content]: [string, unknown]) => {
      if (content === undefined || field === 'map') return [];
      // What passes count has names of their own.
      if (field === 'counts') return [[field, content]];
      if (typeof content === 'number' && TIMES.has(field)) return [[field.slice(0, -'Ms'.length), isoTime(content)]];
      return [[field, jsonOf(content)]];
    }),
  );
}

/** What is no time is shown as it is. */
function isoTime(ms: number): string {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? String(ms) : time.toISOString();
}
