import { type ClusterSpec, DAY_SECONDS, LEASE_INTERVALS, writtenSpecShape } from '../../lib/spec/cluster-spec.ts';
import { BOUNDS, fieldOver, MOST_HOSTS } from '../../lib/util/bounds.ts';
import { isRecord } from '../../lib/util/values.ts';
import { checkApiServers, checkKubeconfigField } from './api-server-rules.ts';
import { checkFamilies, checkNodePortRange, checkPorts, checkServiceRanges } from './network-rules.ts';
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
  checkKubeconfigField(['kubeconfig'], draft.kubeconfig, report);
  checkApiServers(draft, report);
  checkServiceRanges(draft, report);
  checkNodePortRange(draft, report);
  checkMasterCount(draft, report);
  checkLeases(draft, report);
  checkPorts(draft, report);
  checkFamilies(draft, report);
}

function completed(value: unknown): ClusterSpec {
  const { serviceClusterIPRange: serviceClusterIPRanges, ...spec } = writtenSpecShape.parse(value);
  return { ...spec, serviceClusterIPRanges };
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
  const { masterCount, reconciler } = endpoints ?? {};
  const servers = apiServers?.length ?? 0;
  if (reconciler !== 'master-count' || masterCount === undefined || masterCount >= servers) return;
  const message = `${masterCount} is less than the ${servers} API servers in apiServers`;
  report(['endpoints', 'masterCount'], message, `write ${servers} or more`);
}
