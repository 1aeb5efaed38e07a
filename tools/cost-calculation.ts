// Computes the cost of a stack from counted calls (test/tools/cost.test.ts), measured times and published prices.
import { alarms } from '../deploy/alarms.ts';
import { templateParameters } from '../deploy/parameters.ts';
import { COUNTED_AT_ONCE } from '../lib/dispatch/fleet-figures.ts';
import { concurrencyFor } from '../lib/dispatch/ticks.ts';
import { LOOPS, type Loop, SCHEDULE_SECONDS } from '../lib/spec/cluster-spec.ts';

/** Dollars of us-east-1, on demand, without free tiers and discounts for quantity. */
export const PRICES = {
  date: '2026-06',
  region: 'us-east-1',
  lambdaRequest: 0.2e-6,
  lambdaGbSecond: 13.3334e-6,
  readUnit: 0.125e-6,
  writeUnit: 0.625e-6,
  sqsRequest: 0.4e-6,
  secretMonth: 0.4,
  secretRead: 5e-6,
  /** A decryption of a SecureString. Parameter Store itself is free. */
  kmsRequest: 3e-6,
  metricMonth: 0.3,
  alarmMetricMonth: 0.1,
  compositeAlarmMonth: 0.5,
  dashboardMonth: 3,
  logGb: 0.5,
  logGbMonth: 0.03,
} as const;

export interface Fleet {
  readonly clusters: number;
  readonly servers: number;
  readonly services: number;
  /** The number of clusters per message. Default: that of a deployment. */
  readonly clustersPerTick?: number;
  /** Seconds between passes of `kubernetes-service`, at most 60. Default: 10. */
  readonly interval?: number;
}

/** The consumption of one loop of a healthy fleet. */
export interface Usage {
  invocations: number;
  passes: number;
  /** The number of ticks in the queue. `sends` is the number of calls that send them. */
  messages: number;
  sends: number;
  readUnits: number;
  writeUnits: number;
  kubernetesCalls: number;
  logBytes: number;
  metricSeries: number;
}

/** The counted period in seconds. Every schedule fires in this period, and each later period has the same number of ticks. */
export const COUNTED_SECONDS = 180;

/** The bytes of an item, and the bytes that each API server adds to it. */
interface Sized {
  readonly base: number;
  readonly server: number;
}

/** The size of each table item in bytes, including the metadata of writes, for a cluster name of 20 letters. */
const REGISTRATION = { base: 846, server: 67 };
const LEASES = { base: 584, server: 71 };

interface LoopCalls {
  readonly kubernetes: { readonly pass: number; readonly server: number };
  readonly reads: (servers: number) => number;
  /** The size of the run record. `kubernetes-service` writes it once a minute. */
  readonly record: Sized;
  readonly logBytes: Readonly<Record<'schedule' | 'message' | 'pass', number>>;
  readonly metricSeries: number;
  /** The CPU time in ms on a whole core: per invocation, per pass, per API server and per 1,000 Services. */
  readonly cpuMs: Readonly<Record<'invocation' | 'pass' | 'server' | 'services', number>>;
}

const FLEET_RECORD_READS = 1;
const SENT_AT_ONCE = 10;

const CALLS: Readonly<Record<Loop, LoopCalls>> = {
  'system-namespaces': {
    kubernetes: { pass: 4, server: 0 },
    reads: () => 0,
    record: { base: 556, server: 0 },
    logBytes: { schedule: 640, message: 620, pass: 3 },
    metricSeries: 3,
    cpuMs: { invocation: 2.5, pass: 1.4, server: 0, services: 0 },
  },
  'kubernetes-service': {
    kubernetes: { pass: 3, server: 1 },
    reads: (servers) => readUnits(sized(LEASES, servers)),
    record: { base: 642, server: 68 },
    logBytes: { schedule: 1390, message: 680, pass: 5 },
    metricSeries: 14,
    cpuMs: { invocation: 5, pass: 5.7, server: 1.4, services: 0 },
  },
  'cluster-ip-repair': {
    kubernetes: { pass: 2, server: 0 },
    // The stored range is 8 KB for a /16 with addresses in use in all parts, which is two read units.
    reads: () => 3,
    record: { base: 545, server: 0 },
    logBytes: { schedule: 710, message: 665, pass: 5 },
    metricSeries: 4,
    cpuMs: { invocation: 4.5, pass: 1.5, server: 0, services: 10 },
  },
  'node-port-repair': {
    kubernetes: { pass: 1, server: 0 },
    reads: () => 1,
    record: { base: 545, server: 0 },
    logBytes: { schedule: 710, message: 665, pass: 5 },
    metricSeries: 4,
    cpuMs: { invocation: 2.7, pass: 1.4, server: 0, services: 10 },
  },
};

const WAITING_SECONDS = 0.05;
/** The memory in MB with which a function gets one whole core. With less memory it gets a proportional share. */
const MB_OF_A_CORE = 1_769;
/** Lambda's own log lines of each invocation: START, END and REPORT. */
const PLATFORM_LOG_BYTES = 300;
/** The lifetime of a process. It ends before a kubeconfig is read again (after 4 to 8 hours, see lib/runtime/cluster-connections.ts). */
const PROCESS_HOURS = 2;
const HOURS_OF_A_MONTH = 730;
/** The receive calls per queue and month. Lambda polls an idle queue with five simultaneous calls of 20 s. */
const POLLS_OF_A_QUEUE = (5 * HOURS_OF_A_MONTH * 3600) / 20;

const { ClustersPerTick, LoopMemory, RepairMemory } = templateParameters();
const CLUSTERS_PER_TICK = Number(ClustersPerTick?.Default);

const KB = 1024;

function sized({ base, server }: Sized, servers: number): number {
  return base + server * servers;
}

function readUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / (4 * KB)));
}

function writeUnits(bytes: number): number {
  return Math.ceil(bytes / KB);
}

export function usageOf(loop: Loop, fleet: Fleet): Usage {
  const { clusters, servers, clustersPerTick = CLUSTERS_PER_TICK } = fleet;
  const { kubernetes, reads, record, logBytes, metricSeries } = CALLS[loop];
  const isEndpoints = loop === 'kubernetes-service';
  const tickSeconds = SCHEDULE_SECONDS[loop];
  const interval = isEndpoints ? (fleet.interval ?? tickSeconds) : tickSeconds;
  const schedules = COUNTED_SECONDS / Math.max(60, tickSeconds);
  // Only a cluster with an interval below 60 s has ticks between the scheduled minutes.
  const ticks = interval < 60 ? COUNTED_SECONDS / tickSeconds : schedules;
  // A scheduled invocation with several clusters also queues the current tick.
  const queuedTicks = ticks - (clusters > 1 ? 0 : schedules);
  const parts = isEndpoints && clusters > COUNTED_AT_ONCE ? Math.ceil(clusters / COUNTED_AT_ONCE) : 0;
  const messages = queuedTicks * Math.ceil(clusters / clustersPerTick) + schedules * parts;
  const passes = (COUNTED_SECONDS / interval) * clusters;
  const recorded = isEndpoints && interval === tickSeconds ? schedules * clusters : passes;
  const runRecordBytes = Object.values(CALLS).reduce((sum, each) => sum + sized(each.record, servers), 0);
  const figures = isEndpoints ? clusters * readUnits(runRecordBytes) : 0;
  const ofParts = parts === 0 ? 0 : clusters * readUnits(sized(REGISTRATION, servers));
  const listing = readUnits(clusters * sized(REGISTRATION, servers)) + FLEET_RECORD_READS + figures + ofParts;
  const opening = queuedTicks * readUnits(sized(REGISTRATION, servers)) + ticks * readUnits(sized(record, servers));
  const leaseWrites = isEndpoints ? passes * writeUnits(sized(LEASES, servers)) : 0;
  return {
    invocations: schedules + messages,
    passes,
    messages,
    sends: schedules * Math.ceil(messages / schedules / SENT_AT_ONCE),
    readUnits: schedules * listing + messages + clusters * opening + passes * reads(servers),
    writeUnits: recorded * writeUnits(sized(record, servers)) + leaseWrites,
    kubernetesCalls: passes * (kubernetes.pass + kubernetes.server * servers),
    logBytes: schedules * logBytes.schedule + messages * logBytes.message + passes * logBytes.pass,
    metricSeries,
  };
}

function gbSecondsOf(loop: Loop, { servers, services }: Fleet, { invocations, passes }: Usage): number {
  const { cpuMs } = CALLS[loop];
  const memoryMb = loop.endsWith('repair') ? Number(RepairMemory?.Default) : Number(LoopMemory?.Default);
  const passMs = cpuMs.pass + cpuMs.server * servers + (cpuMs.services * services) / 1000;
  const cpuSeconds = (invocations * cpuMs.invocation + passes * passMs) / 1000;
  return (invocations * WAITING_SECONDS + (cpuSeconds * MB_OF_A_CORE) / memoryMb) * (memoryMb / KB);
}

/** Returns how often a loop reads kubeconfigs in a month: each process reads a cluster's kubeconfig with its first message. */
function kubeconfigReadsOf({ passes }: Usage, { clusters, clustersPerTick = CLUSTERS_PER_TICK }: Fleet): number {
  const processes = Math.min(Math.ceil(clusters / clustersPerTick), concurrencyFor(clusters, clustersPerTick));
  const passesOfCluster = (passes / clusters) * ((PROCESS_HOURS * 3600) / COUNTED_SECONDS);
  const processesThatRead = processes * (1 - (1 - 1 / processes) ** passesOfCluster);
  return (clusters * processesThatRead * HOURS_OF_A_MONTH) / PROCESS_HOURS;
}

export interface CostLine {
  readonly service: string;
  readonly quantity: number;
  readonly unit: string;
  readonly dollars: number;
}

/** Returns the cost of a healthy stack in a month, by service. */
export function monthlyCost(fleet: Fleet): readonly CostLine[] {
  const { clusters } = fleet;
  const times = (HOURS_OF_A_MONTH * 3600) / COUNTED_SECONDS;
  const used = LOOPS.map((loop) => ({ loop, usage: usageOf(loop, fleet) }));
  const sum = (amount: (usage: Usage, loop: Loop) => number) =>
    used.reduce((total, { loop, usage }) => total + amount(usage, loop), 0);
  const line = (service: string, unit: string, quantity: number, price: number): CostLine => {
    return { service, quantity, unit, dollars: quantity * price };
  };
  const logGb = (times * sum(({ logBytes, invocations }) => logBytes + invocations * PLATFORM_LOG_BYTES)) / 1e9;
  const metricSeries = sum((usage) => usage.metricSeries);
  const alarmed = alarmCounts();
  const kubeconfigReads = used.reduce((total, { usage }) => total + kubeconfigReadsOf(usage, fleet), 0);
  const sqsRequests = times * sum(({ sends, messages }) => sends + 2 * messages) + LOOPS.length * POLLS_OF_A_QUEUE;
  return [
    line('Lambda', 'requests', times * sum(({ invocations }) => invocations), PRICES.lambdaRequest),
    line('Lambda', 'GB-seconds', times * sum((usage, loop) => gbSecondsOf(loop, fleet, usage)), PRICES.lambdaGbSecond),
    line('DynamoDB', 'read units', times * sum((usage) => usage.readUnits), PRICES.readUnit),
    line('DynamoDB', 'write units', times * sum((usage) => usage.writeUnits), PRICES.writeUnit),
    line('SQS', 'requests', sqsRequests, PRICES.sqsRequest),
    line('Secrets Manager', 'secrets', clusters, PRICES.secretMonth),
    line('Secrets Manager', 'reads', kubeconfigReads, PRICES.secretRead),
    line('CloudWatch metrics', 'series', metricSeries, PRICES.metricMonth),
    line('CloudWatch alarms', 'metrics', alarmed.metrics, PRICES.alarmMetricMonth),
    line('CloudWatch alarms', 'composite', alarmed.composite, PRICES.compositeAlarmMonth),
    line('CloudWatch dashboard', 'dashboards', 1, PRICES.dashboardMonth),
    line('CloudWatch logs', 'GB', logGb, PRICES.logGb + PRICES.logGbMonth),
  ];
}

/** Returns the cost with the kubeconfigs in Parameter Store, where parameters and reads are free, but decryption is not. */
export function withParameterStore(lines: readonly CostLine[]): readonly CostLine[] {
  return lines.flatMap((line) => {
    if (line.service !== 'Secrets Manager') return [line];
    const dollars = line.quantity * PRICES.kmsRequest;
    return line.unit === 'reads' ? [{ ...line, service: 'KMS (Parameter Store)', dollars }] : [];
  });
}

export function totalOf(lines: readonly CostLine[]): number {
  return lines.reduce((total, { dollars }) => total + dollars, 0);
}

/** Counts the billed alarms of the template. An alarm with a formula is billed for each of its metrics. */
function alarmCounts(): { readonly metrics: number; readonly composite: number } {
  const all = Object.values(alarms()).filter(({ Condition }) => Condition === 'HasAlarms');
  const metrics = all.map(({ Type, Properties: { Metrics } = {} }) => {
    if (Type !== 'AWS::CloudWatch::Alarm') return 0;
    return Array.isArray(Metrics) ? Metrics.length - 1 : 1;
  });
  return {
    metrics: metrics.reduce((total, count) => total + count, 0),
    composite: metrics.filter((count) => count === 0).length,
  };
}
