import type {
  ApiServerStatus,
  ClusterStatus,
  FindingStatus,
  FleetStatus,
  Health,
  LoopStatus,
  RangeStatus,
} from '../../cli/status/cluster-status.ts';
import { drawRange } from '../../cli/status/range-map.ts';
import { figures, type TextRange, TITLES, textRange } from '../../cli/status/range-status.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { made } from './ranges.ts';

/** The time of the status: 21 November 2026, 06:15:39 UTC. */
export const STATUS_AT_MS = Date.UTC(2026, 10, 21, 6, 15, 39);

const { intervalSeconds } = aClusterSpec();

export function loopsOf(overrides: Partial<LoopStatus> = {}): LoopStatus[] {
  return LOOPS.map((loop, index) => ({
    loop,
    state: 'good',
    intervalSeconds: intervalSeconds[loop],
    lastPass: {
      startedAtMs: STATUS_AT_MS - 4_000 - 21_000 * index,
      durationMs: 180 + 90 * index,
      outcome: 'succeeded',
      mode: 'enforce',
      counts: {},
      findings: 0,
    },
    failuresInARow: 0,
    lastSuccessAtMs: STATUS_AT_MS - 4_000 - 21_000 * index,
    ...overrides,
  }));
}

export function anApiServer(address: string, overrides: Partial<ApiServerStatus> = {}): ApiServerStatus {
  return {
    address,
    kind: 'server',
    state: 'active',
    source: 'probe',
    expiresAtMs: STATUS_AT_MS + 11_000,
    refreshedAtMs: STATUS_AT_MS - 4_000,
    misses: 0,
    lastProbe: 'answered 200',
    ...overrides,
  };
}

type Marks = Readonly<Record<number, 'D' | 'L' | 'H'>>;

/** Returns a range with about `share` of its items in use, scattered. `marks` sets the letters of single items. */
function aRange(key: RangeKey, text: string, share: number, marks: Marks = {}): RangeStatus {
  const range = made<TextRange>(textRange(key, text));
  const { before, max, reserved } = range;
  const all = [...Array(max).keys()];
  const bits = (letter: string) => all.filter((bit) => marks[bit + before] === letter);
  const used = all.filter((bit) => marks[bit + before] !== undefined || (bit * 89) % 233 < share * 233);
  const [duplicates, leaking, held] = [bits('D'), bits('L'), bits('H')];
  const sets = { used: fromBits(used), leaking: fromBits(leaking), held: fromBits(held), duplicates };
  const map = drawRange(range, sets);
  return {
    key,
    title: TITLES[key],
    range: text,
    allocator: 'table',
    ready: true,
    savedAtMs: STATUS_AT_MS - 46_000,
    ...figures(used.length, max),
    reserved,
    leaking: leaking.length,
    held: held.length,
    duplicates: duplicates.length,
    holds: [],
    ...(map && { map }),
  };
}

/** Returns the range 10.0.0.0/24 with its network address, broadcast address and reserved band. */
export function aSlash24(share = 0.45, marks: Marks = {}): RangeStatus {
  return aRange(RANGE_KEYS.primary, '10.0.0.0/24', share, marks);
}

/** Returns the range fd00:10:96::/108, of which a bitmap covers 65,536 addresses. */
function anIPv6Range(share: number): RangeStatus {
  return aRange(RANGE_KEYS.secondary, 'fd00:10:96::/108', share, { 4096: 'L' });
}

export function nodePorts(share = 0.1, marks: Marks = {}): RangeStatus {
  return aRange(RANGE_KEYS.nodePorts, '30000-32767', share, marks);
}

/** Returns the status of a healthy cluster with three API servers, a /24 range and node ports. */
export function aClusterStatus(overrides: Partial<ClusterStatus> = {}): ClusterStatus {
  return {
    name: 'demo',
    mode: 'enforce',
    allocator: 'table',
    generation: 3,
    owner: { stack: 'kube-bootstrap-controller-prod' },
    health: 'good',
    attention: [],
    apiServers: ['192.0.2.10', '192.0.2.11', '192.0.2.12'].map((address) => anApiServer(address)),
    loops: loopsOf(),
    findings: [],
    unreadable: [],
    ...overrides,
    // The default ranges are only created when they are used, because their bitmaps take time.
    ranges: overrides.ranges ?? [aSlash24(), nodePorts()],
  };
}

export function aFleetStatus(clusters: readonly ClusterStatus[], overrides: Partial<FleetStatus> = {}): FleetStatus {
  return { atMs: STATUS_AT_MS, table: 'kube-bootstrap-controller-prod', clusters, unreadable: [], ...overrides };
}

export function aFinding(overrides: Partial<FindingStatus> = {}): FindingStatus {
  return {
    loop: 'cluster-ip-repair',
    type: 'duplicate',
    message: 'the cluster IP [IPv4]: 10.0.0.37 for service web/checkout has already been allocated to another service',
    service: 'web/checkout',
    item: '10.0.0.37',
    seenAtMs: STATUS_AT_MS - 46_000,
    resolution: 'kbctl show ip prod-eu-1 10.0.0.37 lists both Services: recreate the newer one without clusterIP',
    ...overrides,
  };
}

type Attention = ClusterStatus['attention'][number];

const attention = (level: Attention['level'], word: string, message: string, next: string): Attention =>
  ({ level, word, message, next }) as Attention;

/** Returns clusters of every health. Together they have every state of a lease, of a loop and of a cell. */
export function clustersOfEachKind(): ClusterStatus[] {
  return [contested(), endpointsDown(), filling(), fresh(), paused(), healthy()];
}

function contested(): ClusterStatus {
  const { service: _, ...leak } = aFinding({
    type: 'mayHaveLeaked',
    item: '10.0.0.90',
    message: 'the cluster IP: 10.0.0.90 may have leaked: flagging for later clean up',
    resolution: 'Nothing: it is freed after three passes without a Service.',
  });
  const items = ['10.0.0.200', '10.0.0.201', '10.0.0.202', '10.0.0.203'];
  const hold = { owner: 'migration-7', takenUpBy: 'owner', untilMs: STATUS_AT_MS + 5_400_000, items } as const;
  const range = aSlash24(0.46, { 37: 'D', 90: 'L', 91: 'L', 173: 'L', 200: 'H', 201: 'H', 202: 'H', 203: 'H' });
  const duplicate =
    'the cluster IP [IPv4]:10.0.0.37 for service reports/batch was assigned to multiple services; please recreate';
  return aClusterStatus({
    name: 'prod-eu-1',
    health: 'unhealthy',
    attention: [
      attention('unhealthy', 'duplicate', duplicate, 'recreate the newer one without clusterIP'),
      attention('warning', leak.type, leak.message, 'no action: a Service claims it, or the third pass frees it'),
    ],
    ranges: [{ ...range, holds: [hold] }, nodePorts(0.12, { 80: 'D', 443: 'H' })],
    findings: [aFinding(), leak],
  });
}

function endpointsDown(): ClusterStatus {
  const message = 'GET /api/v1/namespaces/default/services/kubernetes: connect ECONNREFUSED 192.0.2.20:6443';
  const failing: Partial<LoopStatus> = {
    state: 'failing',
    failuresInARow: 7,
    lastPass: {
      startedAtMs: STATUS_AT_MS - 9_000,
      durationMs: 5_004,
      outcome: 'failed',
      mode: 'enforce',
      counts: {},
      error: { code: 'Unavailable', message },
      findings: 1,
    },
    lastSuccessAtMs: STATUS_AT_MS - 78_000,
  };
  const [expiresAtMs, refreshedAtMs] = [STATUS_AT_MS - 65_000, STATUS_AT_MS - 80_000];
  const lastProbe = 'no answer: connect ECONNREFUSED 192.0.2.20:6443';
  const withdrawnUntilMs = STATUS_AT_MS + 1_800_000;
  return aClusterStatus({
    name: 'prod-us-2',
    health: 'unhealthy',
    allocator: 'apiserver',
    attention: [
      attention('unhealthy', 'noLiveLease', 'no API server has a valid lease', 'kbctl doctor prod-us-2 shows why'),
      attention('unhealthy', 'failing', 'kubernetes-service failed 7 times in a row: Unavailable', 'kbctl get runs'),
    ],
    apiServers: [
      anApiServer('192.0.2.20', { state: 'expired', expiresAtMs, refreshedAtMs, misses: 8, lastProbe }),
      anApiServer('192.0.2.21', { state: 'withdrawn', withdrawnUntilMs, lastProbe: 'answered 500' }),
      { host: 'api.us-2.example.com', kind: 'shared', state: 'neverSeen' },
    ],
    loops: loopsOf().map((loop) => (loop.loop === 'kubernetes-service' ? { ...loop, ...failing } : loop)),
    ranges: [anIPv6Range(0.05), nodePorts(0.03)],
    findings: [aFinding({ loop: 'kubernetes-service', type: 'noLiveLease', message: 'no live lease' })],
  });
}

function filling(): ClusterStatus {
  return aClusterStatus({
    name: 'edge-ap-3',
    health: 'warning',
    allocator: 'apiserver',
    attention: [
      attention('warning', 'almostFull', 'cluster IPs 10.0.0.0/24: 92.9 % in use, 18 free', 'widen the range'),
      attention('warning', 'late', 'node-port-repair ran 12m ago; it is due every 3m', 'check the functions'),
    ],
    apiServers: [
      anApiServer('198.51.100.7', { kind: 'shared', host: 'api.ap-3.example.com' }),
      anApiServer('198.51.100.8', { source: 'agent' }),
    ],
    ranges: [aSlash24(0.94), anIPv6Range(0.05), nodePorts(0.02)],
    loops: loopsOf().map((loop) => (loop.loop === 'node-port-repair' ? { ...loop, state: 'late' } : loop)),
  });
}

function fresh(): ClusterStatus {
  return aClusterStatus({
    name: 'staging-new',
    health: 'unknown',
    mode: 'observe',
    allocator: 'apiserver',
    apiServers: [{ address: '203.0.113.5', kind: 'server', state: 'neverSeen' }],
    ranges: [],
    loops: LOOPS.map((loop) => ({
      loop,
      intervalSeconds: intervalSeconds[loop],
      state: 'neverRan',
      failuresInARow: 0,
    })),
  });
}

function paused(): ClusterStatus {
  return aClusterStatus({
    name: 'lab-2',
    health: 'paused',
    paused: { untilMs: STATUS_AT_MS + 6_600_000, reason: 'control plane moves to new hosts', by: 'jo', all: false },
    loops: loopsOf({ state: 'paused' }),
  });
}

function healthy(): ClusterStatus {
  return aClusterStatus({ name: 'prod-eu-2', ranges: [anIPv6Range(0.02), nodePorts(0.06)] });
}

export function manyClusters(count: number, unhealthy = 5): ClusterStatus[] {
  const ranges = [aSlash24(), nodePorts()];
  return Array.from({ length: count }, (_, index) => {
    const health: Health = index < unhealthy ? 'unhealthy' : index % 37 === 0 ? 'warning' : 'good';
    const level = health === 'unhealthy' ? 'unhealthy' : 'warning';
    const duplicate = attention(level, 'duplicate', '10.0.0.37 has two Services.', 'recreate the newer one');
    return aClusterStatus({
      name: `cluster-${String(index).padStart(4, '0')}`,
      health,
      ranges,
      ...(health !== 'good' && { attention: [duplicate], findings: [aFinding()] }),
    });
  });
}
