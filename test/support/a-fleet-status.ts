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
import { textRange } from '../../cli/status/range-status.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/cluster/spec-ranges.ts';
import { aClusterSpec } from './a-cluster-spec.ts';

/** 21 November 2026, 06:15:39 UTC. */
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

/** A number from 0 to 1 for a number, always the same, and in no visible order. */
function scattered(index: number): number {
  const once = Math.imul((index + 0x9e3779b9) ^ ((index + 0x9e3779b9) >>> 16), 0x21f0aaad);
  const twice = Math.imul(once ^ (once >>> 15), 0x735a2d97);
  return ((twice ^ (twice >>> 15)) >>> 0) / 2 ** 32;
}

/** The letter of an item that is another than free. */
type Marks = Readonly<Record<number, 'D' | 'L' | 'H' | 'U'>>;

/** A range with about `share` in use; `marks` puts letters at numbers of items. */
function aRange(
  key: RangeKey,
  title: string,
  text: string,
  share: number | ((index: number) => number),
  marks: Marks = {},
): RangeStatus {
  const range = textRange(key, text);
  if (isRefused(range)) throw range;
  const { before, max, reserved } = range;
  const shareAt = typeof share === 'number' ? () => share : share;
  const all = [...Array(max).keys()];
  const bits = (letters: string) => all.filter((bit) => letters.includes(marks[bit + before] ?? '-'));
  const isUsed = (index: number) => marks[index] !== undefined || scattered(index) < shareAt(index);
  const used = all.filter((bit) => isUsed(bit + before));
  const [duplicates, leaking, held] = [bits('D'), bits('L'), bits('H')];
  const sets = { used: fromBits(used), leaking: fromBits(leaking), held: fromBits(held), duplicates };
  const map = drawRange(range, sets);
  return {
    key,
    title,
    range: text,
    allocator: 'table',
    ready: true,
    savedAtMs: STATUS_AT_MS - 46_000,
    capacity: max,
    used: used.length,
    free: max - used.length,
    usedPercent: (100 * used.length) / max,
    reserved,
    leaking: leaking.length,
    held: held.length,
    duplicates: duplicates.length,
    holds: [],
    ...(map && { map }),
  };
}

/** 10.0.0.0/24 with network, broadcast and reserved band. */
export function aSlash24(share = 0.45, marks: Marks = {}): RangeStatus {
  return aRange(RANGE_KEYS.primary, 'cluster IPs', '10.0.0.0/24', share, marks);
}

/** 10.96.0.0/16 in 4,096 buckets. */
function aSlash16(share = 0.12, marks: Marks = {}): RangeStatus {
  const inUse = (index: number) => share * (1 + Math.cos(index / 9_000) + (index < 9_000 ? 2 : 0));
  return aRange(RANGE_KEYS.primary, 'cluster IPs', '10.96.0.0/16', inUse, marks);
}

/** fd00:10:96::/108, of which a bitmap covers 65,536 addresses. */
function anIPv6Range(share = 0.05): RangeStatus {
  return aRange(RANGE_KEYS.secondary, 'secondary cluster IPs', 'fd00:10:96::/108', share, { 4096: 'L' });
}

/** 30000-32767. */
export function nodePorts(share = 0.1, marks: Marks = {}): RangeStatus {
  return aRange(RANGE_KEYS.nodePorts, 'node ports', '30000-32767', share, marks);
}

/** A good one with three API servers, a /24 and the node ports. */
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
    // Not made where it is not asked for: the maps are what takes time.
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

/** A cluster of every health, with every state of a lease, a loop and a cell among them. */
export function clustersOfEachKind(): ClusterStatus[] {
  return [contested(), endpointsDown(), filling(), fresh(), paused(), healthy()];
}

function contested(): ClusterStatus {
  return aClusterStatus({
    name: 'prod-eu-1',
    health: 'unhealthy',
    attention: [
      {
        level: 'unhealthy',
        word: 'duplicate',
        message:
          'the cluster IP [IPv4]:10.0.0.37 for service reports/batch was assigned to multiple services; please recreate',
        next: 'kbctl show ip prod-eu-1 10.0.0.37 lists both Services: recreate the newer one without clusterIP',
      },
      {
        level: 'warning',
        word: 'mayHaveLeaked',
        message: 'the cluster IP: 10.0.0.90 may have leaked: flagging for later clean up (and 2 more)',
        next: 'no action: a Service claims it, or the third pass frees it',
      },
    ],
    ranges: [
      {
        ...aSlash24(0.46, { 37: 'D', 90: 'L', 91: 'L', 173: 'L', 200: 'H', 201: 'H', 202: 'H', 203: 'H' }),
        holds: [
          {
            owner: 'migration-7',
            takenUpBy: 'owner',
            untilMs: STATUS_AT_MS + 5_400_000,
            items: ['10.0.0.200', '10.0.0.201', '10.0.0.202', '10.0.0.203'],
          },
        ],
      },
      nodePorts(0.12, { 80: 'D', 443: 'H' }),
    ],
    findings: [
      aFinding(),
      aFinding({
        service: 'batch/reports',
        message:
          'the cluster IP [IPv4]: 10.0.0.37 for service batch/reports has already been allocated to another service',
      }),
      ...['10.0.0.90', '10.0.0.91', '10.0.0.173'].map((item) => {
        const message = `the cluster IP: ${item} may have leaked: flagging for later clean up`;
        const resolution = 'Nothing: it is freed after three passes without a Service.';
        const { service: _, ...rest } = aFinding({ type: 'mayHaveLeaked', item, message, resolution });
        return rest;
      }),
    ],
  });
}

function endpointsDown(): ClusterStatus {
  const failing: Partial<LoopStatus> = {
    state: 'failing',
    failuresInARow: 7,
    lastPass: {
      startedAtMs: STATUS_AT_MS - 9_000,
      durationMs: 5_004,
      outcome: 'failed',
      mode: 'enforce',
      counts: {},
      error: {
        code: 'Unavailable',
        message: 'GET /api/v1/namespaces/default/services/kubernetes: connect ECONNREFUSED 192.0.2.20:6443',
      },
      findings: 1,
    },
    lastSuccessAtMs: STATUS_AT_MS - 78_000,
  };
  return aClusterStatus({
    name: 'prod-us-2',
    health: 'unhealthy',
    allocator: 'apiserver',
    attention: [
      {
        level: 'unhealthy',
        word: 'noLiveLease',
        message: 'no API server has a valid lease; the endpoints stay unchanged',
        next: 'kbctl doctor prod-us-2 shows why no API server is reached',
      },
      {
        level: 'unhealthy',
        word: 'failing',
        message: 'kubernetes-service failed 7 times in a row: Unavailable: connect ECONNREFUSED',
        next: 'kbctl get runs prod-us-2 shows the error, and kbctl explain its code',
      },
    ],
    apiServers: [
      anApiServer('192.0.2.20', {
        state: 'expired',
        expiresAtMs: STATUS_AT_MS - 65_000,
        refreshedAtMs: STATUS_AT_MS - 80_000,
        misses: 8,
        lastProbe: 'no answer: connect ECONNREFUSED 192.0.2.20:6443',
      }),
      anApiServer('192.0.2.21', {
        state: 'withdrawn',
        withdrawnUntilMs: STATUS_AT_MS + 1_800_000,
        lastProbe: 'answered 500',
      }),
      { host: 'api.us-2.example.com', kind: 'shared', state: 'neverSeen' },
    ],
    loops: loopsOf().map((loop) => (loop.loop === 'kubernetes-service' ? { ...loop, ...failing } : loop)),
    ranges: [aSlash16(0.05), nodePorts(0.03)],
    findings: [
      {
        loop: 'kubernetes-service',
        type: 'noLiveLease',
        message: 'no live lease: the endpoints of the kubernetes Service are kept as they were',
        seenAtMs: STATUS_AT_MS - 9_000,
        resolution: 'Bring an API server back, or correct the probe.',
      },
    ],
  });
}

function filling(): ClusterStatus {
  return aClusterStatus({
    name: 'edge-ap-3',
    health: 'warning',
    allocator: 'apiserver',
    attention: [
      {
        level: 'warning',
        word: 'almostFull',
        message: 'cluster IPs 10.0.0.0/24: 92.9 % in use, 18 free',
        next: 'delete Services that are not needed, or widen the range: kbctl get ranges edge-ap-3',
      },
      {
        level: 'warning',
        word: 'late',
        message: 'node-port-repair ran 12m ago; it is due every 3m',
        next: 'check whether the functions run: kbctl doctor edge-ap-3',
      },
    ],
    apiServers: [
      anApiServer('198.51.100.7', { kind: 'shared', host: 'api.ap-3.example.com' }),
      anApiServer('198.51.100.8', { source: 'agent' }),
    ],
    ranges: [aSlash24(0.94), anIPv6Range(), nodePorts(0.02)],
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
    loops: loopsOf().map(({ loop, intervalSeconds }) => ({
      loop,
      intervalSeconds,
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
  return aClusterStatus({ name: 'prod-eu-2', ranges: [aSlash16(), anIPv6Range(0.02), nodePorts(0.06)] });
}

/** Many, the first of which need attention. */
export function manyClusters(count: number, unhealthy = 5): ClusterStatus[] {
  const ranges = [aSlash24(), nodePorts()];
  return Array.from({ length: count }, (_, index) => {
    const health: Health = index < unhealthy ? 'unhealthy' : index % 37 === 0 ? 'warning' : 'good';
    const level = health === 'unhealthy' ? 'unhealthy' : 'warning';
    const message = '10.0.0.37 is the cluster IP of two Services.';
    const attention = { level, word: 'duplicate', message, next: 'recreate the newer one' } as const;
    return aClusterStatus({
      name: `cluster-${String(index).padStart(4, '0')}`,
      health,
      ranges,
      ...(health !== 'good' && { attention: [attention], findings: [aFinding()] }),
    });
  });
}
