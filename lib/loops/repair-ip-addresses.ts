import type { Finding, FindingType } from '../cluster/finding.ts';
import { ClusterError, type ClusterPort, isFaultOfKind, isFaultOfObject } from '../kubernetes/cluster-port.ts';
import { listServiceCidrs, type ServiceCidr, servedAddresses } from '../kubernetes/service-cidrs.ts';
import { MANAGED_BY_HOLDS } from '../range/hold-ip-address.ts';
import { type AddressFault, type AddressView, addressFaults } from '../repair/address-faults.ts';
import { type AddressMemory, addressMemoryIn, chooseFaults, endedAt, MOST_FAULTS } from '../repair/address-turns.ts';
import { fullFamilies, serviceCidrUsage } from '../repair/service-cidr-usage.ts';
import { plainValue } from '../table/stored-item.ts';
import { eachOf } from '../util/async.ts';
import { defined } from '../util/values.ts';
import { endHolds, mayEndHolds } from './end-holds.ts';
import {
  type Confirmed,
  correct,
  notCorrected,
  READS_AT_ONCE,
  readAddresses,
  readAgain,
  readParents,
  type Services,
} from './ip-address-calls.ts';
import type { PassContext, PassReport } from './pass.ts';

/** Matches the names of figures of the spec's ranges. The report has the figures of the ServiceCIDRs instead. */
const FIGURES_OF_RANGES = /^(secondary)?(allocated|free|capacity)$/i;

/** Types of findings that are replaced by findings about IPAddresses, which cover all ServiceCIDRs. */
const CLAIM_FINDINGS: ReadonlySet<FindingType> = new Set(['duplicate', 'outOfRange', 'invalid']);

/**
 * Repairs IPAddresses, if the cluster's API servers allocate, and reports the usage of the ServiceCIDRs. Services and IPAddresses
 * are not listed at the same time, so a fault is confirmed before it is reported, and only an unchanged object is deleted.
 */
export async function repairAddresses(
  context: PassContext,
  cidrs: readonly ServiceCidr[],
  services: Services,
  report: PassReport,
): Promise<PassReport> {
  const { kubernetes } = context;
  try {
    const addresses = await readAddresses(kubernetes);
    await readParents(kubernetes, services, addresses?.values() ?? []);
    const counted = withUsage(report, cidrs, services, addresses?.keys() ?? []);
    if (addresses === undefined) return counted;
    const repaired = await withFaults(counted, context, cidrs, { services, addresses });
    const mayEnd = await mayEndHolds(kubernetes);
    const recorded = mayEnd === undefined ? repaired : withState(repaired, { mayEndHolds: mayEnd });
    const isAnyHeld = [...addresses.values()].some(({ managedBy }) => managedBy === MANAGED_BY_HOLDS);
    return isAnyHeld ? await endHolds(recorded, context, services, mayEnd ?? true) : recorded;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    if (error.code !== 'Forbidden') return withoutAddresses(report, context, cidrs, services, error);
    const message = `IPAddresses are not checked: ${error.message}. Apply deploy/rbac.yaml.`;
    const counted = withUsage(report, cidrs, services, []);
    return { ...counted, findings: [...counted.findings, { type: 'other', message, item: 'ipaddresses' }] };
  }
}

/**
 * Returns the report of a pass that cannot list the IPAddresses: the findings that need no IPAddress, the state of the previous
 * pass, and the error.
 */
function withoutAddresses(
  report: PassReport,
  { previous }: PassContext,
  cidrs: readonly ServiceCidr[],
  services: Services,
  error: ClusterError,
): PassReport {
  const view = { services, addresses: new Map(), isServed: servedAddresses(cidrs) };
  const certain = [...addressFaults(view)].filter(({ correction }) => correction === 'none').slice(0, MOST_FAULTS);
  return {
    ...report,
    findings: [
      ...report.findings.filter(({ type }) => !CLAIM_FINDINGS.has(type)),
      ...certain.flatMap((fault) => findingOf(fault, true)),
    ],
    errors: [...report.errors, error],
    ...defined({ state: previous?.state }),
  };
}

/** An address with an IPAddress counts as used even without a Service, because API servers do not allocate it. */
function withUsage(
  report: PassReport,
  cidrs: readonly ServiceCidr[],
  services: Services,
  recorded: Iterable<string>,
): PassReport {
  const claimed = [...services.values()].flatMap(({ clusterIPs }) => clusterIPs);
  const usage = serviceCidrUsage(cidrs, [...recorded, ...claimed]);
  const [primary, secondary] = usage.sums;
  const counts = Object.entries(report.counts).filter(([name]) => !FIGURES_OF_RANGES.test(name));
  return {
    ...report,
    findings: [...report.findings.filter(({ type }) => type !== 'nothingFree'), ...fullFamilies(usage)],
    counts: {
      ...Object.fromEntries(counts),
      ...defined({
        allocated: primary?.used,
        capacity: primary?.capacity,
        secondaryAllocated: secondary?.used,
        secondaryCapacity: secondary?.capacity,
      }),
    },
    state: plainValue(usage),
  };
}

async function withFaults(
  report: PassReport,
  { kubernetes, nowMs, spec, previous }: PassContext,
  cidrs: readonly ServiceCidr[],
  read: Pick<AddressView, 'services' | 'addresses'>,
): Promise<PassReport> {
  const isInitial = servedAddresses(cidrs);
  const clocks = { nowMs: nowMs(), servedAtMs: kubernetes.servedAtMs() };
  const faults = [...addressFaults({ ...read, isServed: isInitial })];
  // If an IPAddress that a Service needs were deleted and not replaced, the address of the Service would be free.
  const replaced = new Set(faults.flatMap(({ correction, item }) => (correction === 'replace' ? item : [])));
  const { listed, unlisted, memory } = chooseFaults(faults, addressMemoryIn(previous?.state), clocks);
  // Services may have addresses of ServiceCIDRs that were created during the pass.
  const isNew = listed.some(({ type }) => type === 'outOfRange')
    ? servedAddresses(await listServiceCidrs(kubernetes))
    : () => false;
  const isServed = (address: string) => isInitial(address) || isNew(address);
  const confirmed = await eachOf(listed, READS_AT_ONCE, (fault) =>
    readAgain(kubernetes, fault, { ...read, isServed }, clocks),
  );
  const { ipAddresses } = spec.repair;
  const { changes, findings, errors, last } = await correctEach(
    kubernetes,
    confirmed.filter((fault) => fault !== undefined),
    ipAddresses,
    replaced,
  );
  const remembered = last === undefined ? memory : endedAt(memory, last);
  const isKept = (type: FindingType) => !CLAIM_FINDINGS.has(type);
  return {
    ...withState(report, { addresses: remembered }),
    changes: [...report.changes, ...changes],
    errors: [...report.errors, ...errors],
    findings: [...report.findings.filter(({ type }) => isKept(type)), ...findings],
    unlisted: new Map([...[...(report.unlisted ?? [])].filter(([type]) => isKept(type)), ...unlisted]),
    counts: { ...report.counts, ipAddresses: read.addresses.size },
  };
}

function withState(report: PassReport, added: { addresses?: AddressMemory; mayEndHolds?: boolean }): PassReport {
  return { ...report, state: plainValue({ ...Object(report.state), ...added }) };
}

/**
 * Corrects faults one by one. If one correction is refused, adds a finding. If a kind of correction is refused, adds one finding
 * and skips the other corrections of this kind. Does not delete IPAddresses in `replaced`, because another correction replaces
 * them. If an error ends the corrections, `last` is the fault that was being corrected.
 */
async function correctEach(
  kubernetes: ClusterPort,
  confirmed: readonly (Confirmed | Finding)[],
  writes: boolean,
  replaced: ReadonlySet<string>,
): Promise<Pick<PassReport, 'changes' | 'findings' | 'errors'> & { readonly last?: AddressFault }> {
  const unread = confirmed.flatMap((one) => ('fault' in one ? [] : [one]));
  // A Service that cannot be read again may have the address, so the IPAddress stays.
  const isUnread = ({ item }: AddressFault) => unread.some((finding) => finding.item === item);
  const faults = confirmed.filter((one) => 'fault' in one).filter(({ fault }) => !isUnread(fault));
  const findings = [...unread, ...faults.flatMap(({ fault }) => findingOf(fault, writes))];
  const changes: string[] = [];
  const refused = new Set<AddressFault['correction']>();
  let last: AddressFault | undefined;
  try {
    const isLeft = ({ correction, item }: AddressFault) => correction === 'delete' && replaced.has(item);
    for (const one of writes ? faults.filter(({ fault }) => !isLeft(fault)) : []) {
      const { fault } = one;
      if (refused.has(fault.correction)) continue;
      last = fault;
      const done = await correct(kubernetes, one).catch((error: unknown) => {
        if (!isFaultOfObject(error)) throw error;
        if (!isFaultOfKind(error)) return notCorrected(fault, error);
        refused.add(fault.correction);
        const message = `IPAddresses are not corrected (${fault.correction}): ${error.message}`;
        return { type: 'notCorrected', message, item: 'ipaddresses' } satisfies Finding;
      });
      if (typeof done === 'string') changes.push(done);
      else if (done !== undefined) findings.push(done);
    }
    return { changes, findings, errors: [] };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { changes, findings, errors: [error], ...defined({ last }) };
  }
}

/** Returns the finding. Omits its event, which contains "repairing", if the pass does not correct the fault. */
function findingOf({ finding, correction }: AddressFault, writes: boolean): Finding[] {
  if (finding === undefined) return [];
  const whole = finding();
  const { event: _, ...withoutEvent } = whole;
  return [correction === 'none' || writes ? whole : withoutEvent];
}
