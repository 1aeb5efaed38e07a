import { isRecord } from './values.ts';

/**
 * Bounds of all input from outside. They count entries, because the number of bytes does not show how much work an
 * input causes. Each bound is checked where a text is parsed into an object. Fields that passes neither keep nor iterate over,
 * such as the labels of a Service, have no bound.
 *
 * A bound of lists in a list limits their total: `subsets[].ports` is the number of ports of all subsets together.
 */
export const BOUNDS = {
  /** The bounds of lists in a Service. The API accepts two cluster IPs, and etcd stores no Service with 65,536 ports. */
  Service: { 'node ports': 65_536, 'cluster IPs': 16 },
  Endpoints: {
    subsets: 100,
    'subsets[].addresses': 1_000,
    'subsets[].notReadyAddresses': 1_000,
    'subsets[].ports': 100,
  },
  /** The bound after Endpoints are repacked: then each port may have its own subset with all addresses. */
  'Endpoints, repacked': { 'subsets[].addresses': 10_000 },
  EndpointSlice: { endpoints: 1_000, 'endpoints[].addresses': 1_000, ports: 100 },
  ServiceCIDR: { 'spec.cidrs': 2 },
  'each list': {
    Namespace: 10_000,
    Service: 100_000,
    'node ports and cluster IPs of Services': 250_000,
    Endpoints: 10_000,
    EndpointSlice: 100,
    ServiceCIDR: 1_000,
    Event: 10_000,
    IPAddress: 200_000,
  },
  'cluster spec': {
    apiServers: 100,
    serviceClusterIPRange: 16,
    'endpoints.extraPorts': 50,
    'service.extraPorts': 50,
    systemNamespaces: 100,
    callerKeys: 1_000,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, number>>>>;

/** The longest credential. It is limited, because each reply is searched for it. Kubernetes and AWS issue tokens of 1 to 2 KB. */
export const LONGEST_TOKEN = 4_096;

/** The longest text from outside. It is about four times as long as the longest name that the API accepts. */
export const LONGEST_TEXT = 1_024;

export interface OverBoundField {
  readonly field: string;
  readonly entries: number;
  readonly most: number;
}

export function fieldOver(value: unknown, bounds: Readonly<Record<string, number>>): OverBoundField | undefined {
  for (const [field, most] of Object.entries(bounds)) {
    const entries = entriesAt(value, field.replaceAll('[]', '.[]').split('.'));
    if (entries > most) return { field, entries, most };
  }
  return undefined;
}

function entriesAt(value: unknown, [step, ...rest]: readonly string[]): number {
  if (step === '[]') {
    return Array.isArray(value) ? value.reduce((sum: number, item) => sum + entriesAt(item, rest), 0) : 0;
  }
  if (step !== undefined) return isRecord(value) ? entriesAt(value[step], rest) : 0;
  if (Array.isArray(value)) return value.length;
  return isRecord(value) ? Object.keys(value).length : 0;
}

/** Returns the path, such as `subsets.0.addresses.7.hostname`, of the first text that is too long, in fields that passes read. */
export function longTextIn(value: unknown, path = ''): string | undefined {
  if (typeof value === 'string') return value.length > LONGEST_TEXT ? path : undefined;
  if (typeof value !== 'object' || value === null || UNREAD.has(path)) return undefined;
  for (const [field, inner] of Object.entries(value)) {
    const found = longTextIn(inner, path === '' ? field : `${path}.${field}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

const UNREAD: ReadonlySet<string> = new Set([
  'metadata.annotations',
  'metadata.managedFields',
  'metadata.ownerReferences',
  'status',
]);

/** The maximum number of addresses of one host name, because each address costs a probe, a lease and a place in the Endpoints. */
export const RECORDS_OF_A_HOST = 32;

/** The maximum number of host names in a spec: with 32 addresses each, all addresses fit in one EndpointSlice (1,000 endpoints). */
export const MOST_HOSTS = 25;

/** The maximum number of addresses that are read from one source, because to parse 100,000 addresses would take seconds. */
export const MOST_RECORDS = 1_000;

/** The longest cluster spec as YAML. A spec with 100 API servers and 1,000 callers has 100 KB. */
export const LONGEST_SPEC_TEXT = 256 * 1024;
