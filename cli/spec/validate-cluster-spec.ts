import { BOUNDS, fieldOver, MOST_HOSTS } from '../../lib/cluster/bounds.ts';
import {
  type ClusterSpec,
  DAY_SECONDS,
  LEASE_INTERVALS,
  LOOPS,
  MOST_EVENTS,
  SCHEDULE_SECONDS,
  writtenSpecShape,
} from '../../lib/cluster/cluster-spec.ts';
import { firstIndexes, isRecord } from '../../lib/cluster/values.ts';
import { apiServerFaults } from './api-server-rules.ts';
import { kubeconfigFaults } from './kubeconfig-rules.ts';
import { isClusterName, isDnsLabel } from './names.ts';
import {
  extraPortFaults,
  ipFamilyFaults,
  nodePortRangeFaults,
  servicePortFaults,
  serviceRangeFaults,
} from './network-rules.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import { checkShape, type SpecDraft } from './spec-shape.ts';

export type SpecResult = { readonly spec: ClusterSpec } | { readonly faults: readonly SpecFault[] };

/**
 * Validates a cluster spec from a YAML or JSON value and fills in every default, or returns all of its faults. Never
 * throws.
 */
export function validateClusterSpec(value: unknown): SpecResult {
  const tooMuch = boundFaults(value);
  if (tooMuch.length > 0) return { faults: tooMuch };
  const { faults: shapeFaults, draft } = checkShape(value);
  const faults = [...shapeFaults, ...ruleFaults(draft)];
  return faults.length > 0 ? { faults } : { spec: completed(value) };
}

/** Checks the bounds before anything else reads the lists. */
function boundFaults(value: unknown): SpecFault[] {
  const over = fieldOver(value, BOUNDS['cluster spec']);
  if (over !== undefined) {
    const { field, entries, most } = over;
    return [fault(field.split('.'), `has ${entries} entries`, `write at most ${most}`)];
  }
  const servers = isRecord(value) && Array.isArray(value['apiServers']) ? value['apiServers'] : [];
  const hosts = servers.filter((server) => isRecord(server) && server['address'] === undefined).length;
  if (hosts <= MOST_HOSTS) return [];
  const message = `has ${hosts} entries without an address, each of which may stand for 32 addresses`;
  return [fault(['apiServers'], message, `write at most ${MOST_HOSTS} of them`)];
}

/** Each rule checks the parts of the right shape, so that one fault does not hide another. */
function ruleFaults(draft: SpecDraft): SpecFault[] {
  const { serviceClusterIPRange: ranges, allocator } = draft;
  return [
    ...nameFaults(draft),
    ...kubeconfigFaults(['kubeconfig'], draft.kubeconfig),
    ...apiServerFaults(draft),
    ...(ranges === undefined ? [] : serviceRangeFaults(ranges, allocator)),
    ...nodePortRangeFaults(draft),
    ...masterCountFaults(draft),
    ...leaseFaults(draft),
    ...servicePortFaults(draft),
    ...extraPortFaults(draft),
    ...ipFamilyFaults(draft),
    ...systemNamespaceFaults(draft),
    ...intervalFaults(draft),
    ...maxEventsFaults(draft),
    ...callerKeyFaults(draft),
  ];
}

function completed(value: unknown): ClusterSpec {
  const { serviceClusterIPRange: serviceClusterIPRanges, ...spec } = writtenSpecShape.parse(value);
  return { ...spec, serviceClusterIPRanges };
}

/** Checks intervals: a pass runs when its schedule does, so an interval must be a multiple of it. */
function intervalFaults({ intervalSeconds }: SpecDraft): SpecFault[] {
  return LOOPS.flatMap((loop) => {
    const seconds = intervalSeconds?.[loop];
    const schedule = SCHEDULE_SECONDS[loop];
    if (seconds === undefined || (seconds > 0 && seconds <= DAY_SECONDS && seconds % schedule === 0)) return [];
    const fix = `write a multiple of ${schedule}, at most ${DAY_SECONDS} (a day)`;
    return [
      fault(
        ['intervalSeconds', loop],
        `${loop} cannot run every ${seconds} s: its schedule is every ${schedule} s`,
        fix,
      ),
    ];
  });
}

/** Checks leases: otherwise a slightly late tick would find every lease expired. */
function leaseFaults({ endpoints, intervalSeconds }: SpecDraft): SpecFault[] {
  const { leaseSeconds, reconciler } = endpoints ?? {};
  if (leaseSeconds === undefined || reconciler === undefined || reconciler === 'none') return [];
  const at = ['endpoints', 'leaseSeconds'];
  if (leaseSeconds < 1 || leaseSeconds > DAY_SECONDS) {
    return [
      fault(at, `${leaseSeconds} s is not a valid time for a lease`, `write seconds from 15 to ${DAY_SECONDS} (a day)`),
    ];
  }
  const interval = intervalSeconds?.['kubernetes-service'];
  if (interval === undefined || leaseSeconds >= LEASE_INTERVALS * interval) return [];
  const message = `${leaseSeconds} s is less than ${LEASE_INTERVALS} times the interval of kubernetes-service, ${interval} s`;
  return [fault(at, message, `write ${Math.ceil(LEASE_INTERVALS * interval)} or more`)];
}

function masterCountFaults({ endpoints, apiServers }: SpecDraft): SpecFault[] {
  const { masterCount, reconciler } = endpoints ?? {};
  if (masterCount === undefined) return [];
  const at = ['endpoints', 'masterCount'];
  if (masterCount < 1) {
    const message = `--apiserver-count should be a positive number, but value '${masterCount}' provided`;
    return [fault(at, message, 'write the number of API servers')];
  }
  const servers = apiServers?.length ?? 0;
  if (reconciler !== 'master-count' || masterCount >= servers) return [];
  return [
    fault(at, `${masterCount} is less than the ${servers} API servers in apiServers`, `write ${servers} or more`),
  ];
}

function maxEventsFaults({ maxEventsPerPass: most }: SpecDraft): SpecFault[] {
  if (most === undefined || (most >= 0 && most <= MOST_EVENTS)) return [];
  return [
    fault(['maxEventsPerPass'], `${most} is not a valid number of events`, `write a number from 0 to ${MOST_EVENTS}`),
  ];
}

function nameFaults({ name }: SpecDraft): SpecFault[] {
  if (name === undefined || isClusterName(name)) return [];
  return [
    fault(['name'], `${quoted(name)} is not a valid cluster name`, 'use a-z, 0-9 and hyphens, at most 63 of them'),
  ];
}

function systemNamespaceFaults({ systemNamespaces: names = [] }: SpecDraft): SpecFault[] {
  const first = firstIndexes(names);
  return names.flatMap((name, index) => {
    const at = ['systemNamespaces', index];
    if (name === undefined) return [];
    if (first.get(name) !== index) return [fault(at, `${quoted(name)} is listed twice`, 'list each namespace once')];
    if (isDnsLabel(name)) return [];
    return [
      fault(at, `${quoted(name)} is not a valid namespace name`, 'use a-z, 0-9 and hyphens inside, at most 63 of them'),
    ];
  });
}

function callerKeyFaults({ callerKeys: hashes = [] }: SpecDraft): SpecFault[] {
  const first = firstIndexes(hashes);
  return hashes.flatMap((hash, index) => {
    const at = ['callerKeys', index];
    if (hash === undefined) return [];
    if (first.get(hash) !== index) return [fault(at, 'is listed twice', 'list the hash of each key once')];
    if (/^[0-9a-f]{64}$/.test(hash)) return [];
    // Not quoted: the value may be the key itself.
    return [fault(at, 'is not a SHA-256 hash in hex', 'write 64 of 0-9 and a-f: printf %s KEY | sha256sum')];
  });
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 70 ? `${name.slice(0, 70)}...` : name);
}
