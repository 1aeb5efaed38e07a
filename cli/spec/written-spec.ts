import { type ApiServerSpec, type ClusterSpec, isDnsName } from '../../lib/spec/cluster-spec.ts';
import { isRecord, type JsonRecord } from '../../lib/util/values.ts';

/** Returns a stored spec in the form of a spec file. `validateClusterSpec` turns this form into the same spec again. */
export function writtenSpec({
  apiServers,
  serviceClusterIPRanges: serviceClusterIPRange,
  ...spec
}: ClusterSpec): object {
  return { ...spec, serviceClusterIPRange, apiServers: apiServers.map(writtenApiServer) };
}

function writtenApiServer({ probe: { url, path, ...probe }, ...server }: ApiServerSpec): object {
  const written = { ...probe, ...(url === undefined ? { path } : { url }) };
  if ('address' in server || isDnsName(server)) return { ...server, probe: written };
  const { host: _, ...source } = server;
  return { ...source, probe: written };
}

export interface FieldDifference {
  /** The path of the field, such as `mode` or `apiServers[203.0.113.10].probe.path`. */
  readonly field: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Compares field by field. Entries of lists are identified by address, host or name, not by their index. */
export function specDifference(before: ClusterSpec, after: ClusterSpec): FieldDifference[] {
  return differences('', asWritten(before), asWritten(after));
}

export function differenceLine({ field, before, after }: FieldDifference): string {
  return `${field}: ${valueText(before)} -> ${valueText(after)}`;
}

/** Returns the spec with its ranges of cluster IPs as one text, as in a spec file. */
function asWritten({ serviceClusterIPRanges, serviceNodePortRange, ...spec }: ClusterSpec): JsonRecord {
  return { ...spec, serviceClusterIPRange: serviceClusterIPRanges.join(','), serviceNodePortRange };
}

function differences(field: string, before: unknown, after: unknown): FieldDifference[] {
  if (isRecord(before) && isRecord(after)) {
    return ofFields(before, after, (name) => (field === '' ? name : `${field}.${name}`));
  }
  const entries = [before, after].map(entriesByName);
  const [old, now] = entries;
  if (old !== undefined && now !== undefined) {
    const found = ofFields(old, now, (name) => `${field}[${name}]`);
    if (found.length > 0 || Object.keys(old).join() === Object.keys(now).join()) return found;
    return [{ field: `${field} (order)`, before: Object.keys(old), after: Object.keys(now) }];
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  return [{ field, before, after }];
}

function ofFields(before: JsonRecord, after: JsonRecord, fieldOf: (name: string) => string): FieldDifference[] {
  const names = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...names].flatMap((name) => differences(fieldOf(name), before[name], after[name]));
}

/** Returns the entries of a list by their address, host or name; `undefined` for any other value. */
function entriesByName(value: unknown): JsonRecord | undefined {
  if (!Array.isArray(value)) return undefined;
  const named = value.map((entry) => {
    const name = isRecord(entry) ? (entry['address'] ?? entry['host'] ?? entry['name']) : undefined;
    return typeof name === 'string' ? ([name, entry] as const) : undefined;
  });
  const known = named.filter((entry) => entry !== undefined);
  return known.length === value.length ? Object.fromEntries(known) : undefined;
}

function valueText(value: unknown): string {
  if (value === undefined) return '<none>';
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  if (!isRecord(value)) return String(value);
  const fields = Object.entries(value).map(([name, content]) => `${name}: ${valueText(content)}`);
  return `{${fields.join(', ')}}`;
}
