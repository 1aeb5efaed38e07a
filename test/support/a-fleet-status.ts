import type {
  ApiServerStatus,
  ClusterStatus,
  FindingStatus,
  FleetStatus,
  LoopStatus,
  RangeStatus,
} from '../../cli/status/cluster-status.ts';
import type { SavedRange, StatusInputs } from '../../cli/status/read-inputs.ts';
import { workOutStatus } from '../../cli/status/work-out-status.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import type { Lease } from '../../lib/leases/lease.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { ClusterSpec, Loop } from '../../lib/spec/cluster-spec.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { ListedCluster } from '../../lib/table/clusters.ts';
import type { RunRecord, RunRecords } from '../../lib/table/run-records.ts';
import { aClusterSpec, aHost, aServer } from './a-cluster-spec.ts';
import { found } from './found.ts';
import { type LeaseFields, aLease as leaseWith } from './put-lease.ts';
import { storedRange } from './ranges.ts';
import { aRunRecord, runRecords } from './run-records.ts';

/** The time of the status: 21 November 2026, 06:15:39 UTC. */
export const NOW_MS = Date.UTC(2026, 10, 21, 6, 15, 39);
export const MINUTE_MS = 60_000;

export function aCluster(spec: Partial<ClusterSpec> = {}, rest: Partial<ListedCluster> = {}): ListedCluster {
  const usual = { generation: 3, rangesGeneration: 2, writtenAtMs: NOW_MS - 60 * MINUTE_MS };
  return { spec: aClusterSpec(spec), ...usual, ...rest };
}

/** Returns a lease that was refreshed five seconds ago. */
export function aLease(given: Partial<LeaseFields> = {}): Lease {
  const usual = { address: '10.9.8.7', generation: 4, expiresAtMs: NOW_MS + 10_000, lastProbe: 'answered 200' };
  return leaseWith({ ...usual, ...given });
}

export function aStoredRange(taken: readonly number[], rest: Partial<StoredRange> = {}): StoredRange {
  const usual = { range: '10.0.0.0/24', allocator: 'apiserver', generation: 2 } as const;
  return storedRange({ ...usual, data: fromBits(taken), ...rest });
}

export function saved(key: SavedRange['key'], stored: StoredRange): SavedRange {
  return { key, stored, savedAtMs: NOW_MS - MINUTE_MS };
}

/** Returns the inputs of a healthy cluster: each loop ran ten seconds ago. */
export function inputs(given: Partial<StatusInputs> = {}): StatusInputs {
  const usual = { cluster: aCluster(), leases: [aLease()], records: runRecords(NOW_MS - 10_000) };
  return { pausedAll: undefined, ranges: [], unreadable: [], ...usual, ...given };
}

export function statusOf(given: Partial<StatusInputs> = {}): ClusterStatus {
  return workOutStatus(inputs(given), NOW_MS);
}

/** Returns run records of successful passes, one for each loop. The record of `loop` has these other fields. */
export function recordsWith(loop: Loop, fields: Partial<RunRecord>, startedAtMs: number = NOW_MS): RunRecords {
  return { ...runRecords(startedAtMs), [loop]: aRunRecord(startedAtMs, fields) };
}

/** Returns about `share` of the bits of a range, scattered. */
function scattered(max: number, share: number): number[] {
  return [...Array(max).keys()].filter((bit) => (bit * 89) % 233 < share * 233);
}

/** Returns a healthy cluster with ranges. `primary` and `ports` are the shares of its addresses and node ports in use. */
function inputsOf(name: string, spec: Partial<ClusterSpec> = {}, primary = 0.45, ports = 0.1): StatusInputs {
  const owner = { stack: 'kube-bootstrap-controller-prod' };
  const cluster = aCluster({ name, allocator: 'table', ...spec }, { owner });
  const { allocator, serviceClusterIPRanges, serviceNodePortRange } = cluster.spec;
  const [range] = serviceClusterIPRanges;
  const size = range.includes(':') ? 65_535 : 254;
  return inputs({
    cluster,
    ranges: [
      saved(RANGE_KEYS.primary, aStoredRange(scattered(size, primary), { allocator, range })),
      saved(RANGE_KEYS.nodePorts, aStoredRange(scattered(2768, ports), { allocator, range: serviceNodePortRange })),
    ],
  });
}

const IPV6: Partial<ClusterSpec> = { allocator: 'apiserver', serviceClusterIPRanges: ['fd00:10:96::/112'] };

/** Returns the status of a healthy cluster with an API server, a /24 range and node ports. */
export function aClusterStatus(overrides: Partial<ClusterStatus> = {}): ClusterStatus {
  // The default ranges are only created when they are used, because their bitmaps take time.
  const defaults = inputsOf('demo');
  return { ...workOutStatus(overrides.ranges ? { ...defaults, ranges: [] } : defaults, NOW_MS), ...overrides };
}

export function aFleetStatus(clusters: readonly ClusterStatus[], overrides: Partial<FleetStatus> = {}): FleetStatus {
  return { atMs: NOW_MS, table: 'kube-bootstrap-controller-prod', clusters, unreadable: [], ...overrides };
}

export function loopsOf(overrides: Partial<LoopStatus> = {}): LoopStatus[] {
  return statusOf().loops.map((loop) => ({ ...loop, ...overrides }));
}

export function anApiServer(address: string, overrides: Partial<ApiServerStatus> = {}): ApiServerStatus {
  return { ...statusOf().apiServers[0], address, state: 'active', ...overrides };
}

/** Returns the range 10.0.0.0/24 with its network address, broadcast address and reserved band. */
export function aSlash24(): RangeStatus {
  return found(aClusterStatus().ranges[0]);
}

export function nodePorts(): RangeStatus {
  return found(aClusterStatus().ranges[1]);
}

export function aFinding(overrides: Partial<FindingStatus> = {}): FindingStatus {
  return { ...found(contested().findings[0]), ...overrides };
}

/** Returns clusters of every health. Together they have every state of a lease, of a loop and of a cell. */
export function clustersOfEachKind(): ClusterStatus[] {
  return [contested(), endpointsDown(), filling(), fresh(), paused(), healthy()];
}

function contested(): ClusterStatus {
  const given = inputsOf('prod-eu-1');
  const items = ['10.0.0.200', '10.0.0.201', '10.0.0.202', '10.0.0.203'];
  const hold = { owner: 'migration-7', takenUpBy: 'owner', untilMs: NOW_MS + 5_400_000, items } as const;
  const strikes = { once: fromBits([89, 90, 172]), twice: fromBits([]) };
  const taken = new Set([...scattered(254, 0.46), 36, 89, 90, 172, 199, 200, 201, 202]);
  const range = aStoredRange([...taken], { allocator: 'table', strikes, holds: [hold] });
  const message =
    'the cluster IP [IPv4]:10.0.0.37 for service reports/batch was assigned to multiple services; please recreate';
  const leak = 'the cluster IP: 10.0.0.90 may have leaked: flagging for later clean up';
  const findings: RunRecord['findings'] = [
    { type: 'duplicate', message, service: 'reports/batch', item: '10.0.0.37' },
    { type: 'mayHaveLeaked', message: leak, item: '10.0.0.90' },
  ];
  const records = recordsWith('cluster-ip-repair', { findings }, NOW_MS - 46_000);
  const ranges = [saved(RANGE_KEYS.primary, range), ...(given.ranges ?? []).slice(1)];
  return workOutStatus({ ...given, records, ranges }, NOW_MS);
}

function endpointsDown(): ClusterStatus {
  const apiServers = [aServer('192.0.2.20'), aServer('192.0.2.21'), aHost('api.us-2.example.com')];
  const message = 'GET /api/v1/namespaces/default/services/kubernetes: connect ECONNREFUSED 192.0.2.20:6443';
  const failed = aRunRecord(NOW_MS - 9_000, {
    durationMs: 5_004,
    outcome: 'failed',
    error: { code: 'Unavailable', message },
    findings: [{ type: 'noLiveLease', message: 'no live lease' }],
    failuresInARow: 7,
    lastSuccessAtMs: NOW_MS - 78_000,
  });
  const lastProbe = 'no answer: connect ECONNREFUSED 192.0.2.20:6443';
  const leases = [
    aLease({ address: '192.0.2.20', expiresAtMs: NOW_MS - 65_000, misses: 8, lastProbe }),
    aLease({ address: '192.0.2.21', withdrawnUntilMs: NOW_MS + 1_800_000, lastProbe: 'answered 500' }),
  ];
  const records = {
    ...runRecords(NOW_MS - 10_000),
    'kubernetes-service': failed,
    'node-port-repair': aRunRecord(NOW_MS - 12 * MINUTE_MS),
  };
  const given = inputsOf('prod-us-2', { ...IPV6, apiServers }, 0.05, 0.03);
  return workOutStatus({ ...given, leases, records }, NOW_MS);
}

function filling(): ClusterStatus {
  const apiServers = [aHost('api.ap-3.example.com'), aServer('198.51.100.8')];
  const leases = [
    aLease({ address: '198.51.100.7', host: 'api.ap-3.example.com' }),
    aLease({ address: '198.51.100.8', source: 'agent' }),
  ];
  const given = inputsOf('edge-ap-3', { allocator: 'apiserver', apiServers }, 0.94, 0.02);
  return workOutStatus({ ...given, leases }, NOW_MS);
}

function fresh(): ClusterStatus {
  const cluster = aCluster({ name: 'staging-new', mode: 'observe' }, { writtenAtMs: NOW_MS });
  return statusOf({ cluster, records: {}, leases: [] });
}

function paused(): ClusterStatus {
  const given = inputsOf('lab-2');
  const pause = { untilMs: NOW_MS + 6_600_000, reason: 'control plane moves to new hosts', by: 'jo' };
  return workOutStatus({ ...given, cluster: { ...given.cluster, paused: pause } }, NOW_MS);
}

function healthy(): ClusterStatus {
  return workOutStatus(inputsOf('prod-eu-2', IPV6, 0.02, 0.06), NOW_MS);
}

/** Returns healthy clusters, and `ill` ones of which a third each has a duplicate, has no API server, or has a full range. */
export function fleetOf(count: number, ill: number): ClusterStatus[] {
  const good = healthy();
  const kinds = [contested(), endpointsDown(), filling()];
  return Array.from({ length: count }, (_, index) => {
    const name = index === 0 ? `a-tenant-with-a-very-long-name-${'x'.repeat(32)}` : `tenant-${index}-eu-central-1`;
    return { ...(index < ill ? found(kinds[Math.floor((3 * index) / ill)]) : good), name };
  });
}

/** Returns a status in which every text from the table or an API server is `text`. */
export function aStatusOf(text: string): ClusterStatus {
  const pass = { startedAtMs: 1, durationMs: 1, outcome: 'failed', mode: 'observe', findings: 1 } as const;
  const lastPass = { ...pass, counts: { [text]: 1 }, error: { code: text, message: text } };
  return aClusterStatus({
    name: text,
    health: 'unhealthy',
    owner: { stack: text },
    paused: { untilMs: NOW_MS + 1, reason: text, by: text, all: true },
    attention: [{ level: 'unhealthy', word: text, message: text, next: text }],
    apiServers: [anApiServer(text, { host: text, lastProbe: text }), { host: text, state: 'neverSeen' }],
    loops: loopsOf({ state: 'failing', lastPass, wouldWrite: [text], lastChange: { atMs: NOW_MS, changes: [text] } }),
    ranges: [{ ...nodePorts(), title: text, range: text, holds: [{ owner: text, takenUpBy: 'any', items: [text] }] }],
    findings: [aFinding({ message: text, service: text, item: text, resolution: text })],
    unreadable: [text],
  });
}
