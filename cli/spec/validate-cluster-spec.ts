import {
  type ClusterSpec,
  DAY_SECONDS,
  KEY_HASH,
  LEASE_INTERVALS,
  LOOPS,
  MOST_EVENTS,
  SCHEDULE_SECONDS,
  writtenSpecShape,
} from '../../lib/spec/cluster-spec.ts';
import { BOUNDS, fieldOver, MOST_HOSTS } from '../../lib/util/bounds.ts';
import { firstIndexes, isRecord } from '../../lib/util/values.ts';
import { checkApiServers } from './api-server-rules.ts';
import { checkKubeconfigField } from './kubeconfig-rules.ts';
import { isClusterName, isDnsLabel, LABEL_FIX } from './names.ts';
import {
  checkExtraPorts,
  checkFamilies,
  checkNodePortRange,
  checkServicePorts,
  checkServiceRanges,
} from './network-rules.ts';
import { fault, type Report, type SpecFault } from './spec-fault.ts';
import { checkShape, type SpecDraft } from './spec-shape.ts';

export type SpecResult = { readonly spec: ClusterSpec } | { readonly faults: readonly SpecFault[] };

/** Fills in every default, or returns all faults. Never throws. */
export function validateClusterSpec(value: unknown): SpecResult {
  const faults: SpecFault[] = [];
  const report: Report = (at, message, fix) => void faults.push(fault(at, message, fix));
  checkBounds(value, report);
  // Lists that are too long are not checked further.
  if (faults.length === 0) checkRules(checkShape(value, report), report);
  return faults.length > 0 ? { faults } : { spec: completed(value) };
}

function checkBounds(value: unknown, report: Report): void {
  const over = fieldOver(value, BOUNDS['cluster spec']);
  if (over !== undefined) {
    report(over.field.split('.'), `has ${over.entries} entries`, `write at most ${over.most}`);
    return;
  }
  const servers = isRecord(value) && Array.isArray(value['apiServers']) ? value['apiServers'] : [];
  const hosts = servers.filter((server) => isRecord(server) && server['address'] === undefined).length;
  if (hosts <= MOST_HOSTS) return;
  const message = `has ${hosts} entries without an address, each of which may stand for 32 addresses`;
  report(['apiServers'], message, `write at most ${MOST_HOSTS} of them`);
}

/** Checks the rules of all fields. A rule ignores parts with a wrong shape, because that fault is reported elsewhere. */
function checkRules(draft: SpecDraft, report: Report): void {
  const { name, maxEventsPerPass: mostEvents = 0 } = draft;
  if (name !== undefined && !isClusterName(name)) {
    report(['name'], `${quoted(name)} is not a valid cluster name`, 'use a-z, 0-9 and hyphens, at most 63 of them');
  }
  checkKubeconfigField(['kubeconfig'], draft.kubeconfig, report);
  checkApiServers(draft, report);
  checkServiceRanges(draft, report);
  checkNodePortRange(draft, report);
  checkMasterCount(draft, report);
  checkLeases(draft, report);
  checkServicePorts(draft, report);
  checkExtraPorts(draft, report);
  checkFamilies(draft, report);
  checkSystemNamespaces(draft, report);
  checkIntervals(draft, report);
  if (mostEvents < 0 || mostEvents > MOST_EVENTS) {
    const fix = `write a number from 0 to ${MOST_EVENTS}`;
    report(['maxEventsPerPass'], `${mostEvents} is not a valid number of events`, fix);
  }
  checkCallerKeys(draft, report);
}

function completed(value: unknown): ClusterSpec {
  const { serviceClusterIPRange: serviceClusterIPRanges, ...spec } = writtenSpecShape.parse(value);
  return { ...spec, serviceClusterIPRanges };
}

/** Checks intervals. A pass runs only when its loop is scheduled, so an interval must be a multiple of the schedule. */
function checkIntervals({ intervalSeconds }: SpecDraft, report: Report): void {
  for (const loop of LOOPS) {
    const schedule = SCHEDULE_SECONDS[loop];
    const seconds = intervalSeconds?.[loop] ?? schedule;
    if (seconds > 0 && seconds <= DAY_SECONDS && seconds % schedule === 0) continue;
    const message = `${loop} cannot run every ${seconds} s: its schedule is every ${schedule} s`;
    report(['intervalSeconds', loop], message, `write a multiple of ${schedule}, at most ${DAY_SECONDS} (a day)`);
  }
}

/** Checks that leases last at least `LEASE_INTERVALS` intervals. Otherwise, a slightly late tick would find them expired. */
function checkLeases({ endpoints, intervalSeconds }: SpecDraft, report: Report): void {
  const { leaseSeconds, reconciler } = endpoints ?? {};
  if (leaseSeconds === undefined || reconciler === undefined || reconciler === 'none') return;
  const at = ['endpoints', 'leaseSeconds'];
  const interval = intervalSeconds?.['kubernetes-service'] ?? 0;
  if (leaseSeconds < 1 || leaseSeconds > DAY_SECONDS) {
    report(at, `${leaseSeconds} s is not a valid time for a lease`, `write seconds from 15 to ${DAY_SECONDS} (a day)`);
  } else if (leaseSeconds < LEASE_INTERVALS * interval) {
    const message = `${leaseSeconds} s is less than ${LEASE_INTERVALS} times the interval of kubernetes-service, ${interval} s`;
    report(at, message, `write ${Math.ceil(LEASE_INTERVALS * interval)} or more`);
  }
}

function checkMasterCount({ endpoints, apiServers }: SpecDraft, report: Report): void {
  const { masterCount = 1, reconciler } = endpoints ?? {};
  const servers = apiServers?.length ?? 0;
  const at = ['endpoints', 'masterCount'];
  if (masterCount < 1) {
    const message = `--apiserver-count should be a positive number, but value '${masterCount}' provided`;
    report(at, message, 'write the number of API servers');
  } else if (reconciler === 'master-count' && masterCount < servers) {
    report(at, `${masterCount} is less than the ${servers} API servers in apiServers`, `write ${servers} or more`);
  }
}

function checkSystemNamespaces({ systemNamespaces: names = [] }: SpecDraft, report: Report): void {
  const first = firstIndexes(names);
  for (const [index, name] of names.entries()) {
    const at = ['systemNamespaces', index];
    if (name === undefined) continue;
    if (first.get(name) !== index) report(at, `${quoted(name)} is listed twice`, 'list each namespace once');
    else if (!isDnsLabel(name)) report(at, `${quoted(name)} is not a valid namespace name`, LABEL_FIX);
  }
}

function checkCallerKeys({ callerKeys: hashes = [] }: SpecDraft, report: Report): void {
  const first = firstIndexes(hashes);
  for (const [index, hash] of hashes.entries()) {
    const at = ['callerKeys', index];
    if (hash === undefined) continue;
    if (first.get(hash) !== index) report(at, 'is listed twice', 'list the hash of each key once');
    // The message does not quote the value, because the value may be the key itself.
    else if (!KEY_HASH.test(hash)) report(at, 'is not a SHA-256 hash in hex', HASH_FIX);
  }
}

const HASH_FIX = 'write 64 of 0-9 and a-f: printf %s KEY | sha256sum';

function quoted(name: string): string {
  return JSON.stringify(name.length > 70 ? `${name.slice(0, 70)}...` : name);
}
