import type { Item, TableValue } from '../../lib/table/key-value-table.ts';

/**
 * The content of one type of table item as release 0.1.0 stores it. A later release adds an entry for its own format, and does
 * not change older entries.
 */
export interface StoredForm {
  readonly cluster: string;
  readonly key: string;
  readonly schema: number;
  /** The value without optional fields. */
  readonly least: TableValue;
  /**
   * Returns the value with all optional fields. Each object in it, except maps with arbitrary keys, also gets the fields of
   * `newer`.
   */
  readonly most: (newer: { readonly [field: string]: TableValue }) => TableValue;
}

const bytes = (...values: number[]) => new Uint8Array(values);
const range = { range: '10.0.0.0/24', allocator: 'table', generation: 3 };
const hold = { items: ['10.0.0.9'], owner: 'someone', takenUpBy: 'owner' };
const record = {
  passId: 'pass-1',
  startedAtMs: 1000,
  durationMs: 20,
  outcome: 'succeeded',
  mode: 'enforce',
  observed: false,
  counts: { services: 3 },
  failuresInARow: 0,
};
const sighting = { count: 2, lastSeenAtMs: 900, lastWrittenAtMs: 800 };
const spec = {
  name: 'demo',
  mode: 'enforce',
  allocator: 'table',
  kubeconfig: { secretsManager: 'prod/demo' },
  apiServers: [{ address: '10.9.8.7', kind: 'server', probe: { path: '/readyz', authenticate: false } }],
  serviceClusterIPRanges: ['10.0.0.0/24'],
  serviceNodePortRange: '30000-32767',
  endpoints: { reconciler: 'lease', masterCount: 1, leaseSeconds: 15, reconcilePorts: true, extraPorts: [] },
  service: { port: 443, securePort: 6443, nodePort: 0, extraPorts: [], reconcile: false },
  repair: { ipAddresses: false },
  systemNamespaces: ['kube-system'],
  intervalSeconds: {
    'system-namespaces': 60,
    'kubernetes-service': 10,
    'cluster-ip-repair': 180,
    'node-port-repair': 180,
  },
  maxEventsPerPass: 20,
};

export const STORED_FORMS = {
  registration: {
    cluster: '#clusters',
    key: 'demo',
    schema: 1,
    least: { generation: 4, rangesGeneration: 3, spec },
    most: (newer) => ({
      generation: 4,
      rangesGeneration: 3,
      spec: { ...spec, callerKeys: ['ab'], ...newer },
      owner: { stack: 'prod', ...newer },
      paused: { untilMs: 9000, reason: 'drill', by: 'someone', ...newer },
      ...newer,
    }),
  },
  'pause of all': {
    cluster: '#clusters',
    key: '*',
    schema: 1,
    least: {},
    most: (newer) => ({ paused: { untilMs: 9000, reason: 'drill', by: 'someone', ...newer }, ...newer }),
  },
  leases: {
    cluster: 'demo',
    key: 'masterleases',
    schema: 1,
    least: { '10.9.8.7': { generation: 5, expiresAtMs: 2000 } },
    most: (newer) => ({
      '10.9.8.6': { generation: 1, expiresAtMs: 2000, ...newer },
      '10.9.8.7': {
        generation: 5,
        source: 'agent',
        expiresAtMs: 2000,
        misses: 1,
        seenDown: true,
        host: 'api.example.com',
        missedAtMs: 1900,
        lateSinceMs: 1800,
        withdrawnUntilMs: 5000,
        lastProbe: 'answered 200',
        ...newer,
      },
    }),
  },
  'run record': {
    cluster: 'demo',
    key: 'runs/kubernetes-service',
    schema: 1,
    least: { ...record, findings: [], events: {} },
    most: (newer) => ({
      ...record,
      findings: [{ type: 'twoOwners', message: 'text', item: '10.0.0.1', service: 'default/web', ...newer }],
      findingCounts: { twoOwners: 1 },
      error: { code: 'Unreachable', message: 'text', ...newer },
      withoutAnswer: 1,
      lastSuccessAtMs: 900,
      events: { 'kubernetes.1': { ...sighting, ...newer } },
      wouldWrite: ['create Service default/kubernetes'],
      lastChange: { atMs: 700, changes: ['created Service default/kubernetes'], ...newer },
      state: { wanted: '10.9.8.7:6443' },
      ...newer,
    }),
  },
  range: {
    cluster: 'demo',
    key: 'ranges/serviceips',
    schema: 2,
    least: { ...range, data: bytes(1), strikes: { once: bytes(), twice: bytes() }, holds: [] },
    most: (newer) => ({
      ...range,
      data: bytes(3, 1),
      strikes: {
        once: bytes(1),
        twice: bytes(2),
        last: { atMs: 800, passId: 'pass-0', controlPlane: 'uid', ...newer },
        ...newer,
      },
      holds: [{ ...hold, untilMs: 9000, requestId: 'r1', ...newer }],
      given: { default: 'web 1 0,1 ' },
      ...newer,
    }),
  },
  request: {
    cluster: 'demo',
    key: 'requests/r1',
    schema: 1,
    least: { state: 'begun', fingerprint: 'f' },
    most: (newer) => ({
      state: 'done',
      fingerprint: 'f',
      hold: { owner: 'someone', takenUpBy: 'owner', untilMs: 9000, ...newer },
      takesUp: { serviceips: [{ ...hold, ...newer }] },
      releases: { serviceips: [{ ...hold, ...newer }] },
      busyUntilMs: 5000,
      answer: '{}',
      ...newer,
    }),
  },
  suspect: {
    cluster: '#fleet',
    key: 'prod/kubernetes-service/suspects/demo',
    schema: 1,
    least: { sinceMs: 100, untilMs: 5000, accidents: 1, state: 'unproven' },
    most: (newer) => ({ sinceMs: 100, untilMs: 5000, accidents: 1, state: 'again', ...newer }),
  },
} as const satisfies Readonly<Record<string, StoredForm>>;

/** Returns a stored item. @param changed Fields that replace those of release 0.1.0. */
export function storedItem({ cluster, key, schema, least }: StoredForm, changed: Partial<Item> = {}): Item {
  return { cluster, key, schema, value: least, writeId: 'before', version: 1, updatedAtMs: 0, ...changed };
}
