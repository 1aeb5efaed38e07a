import { hostBits, type Network, rangeSize } from '../../lib/allocator/network.ts';
import { containsPort, portIntervalText } from '../../lib/allocator/port-range.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { readNodePortRange, readServiceRanges, serviceRangeEntries } from '../../lib/spec/spec-parts.ts';
import { firstIndexes } from '../../lib/util/values.ts';
import { pathText, type Report, type SpecPath } from './spec-fault.ts';
import type { SpecDraft } from './spec-shape.ts';

const FIELD = 'serviceClusterIPRange';
const FEWEST_ADDRESSES = 8n;
/** The maximum number of host bits, as upstream. The usage bitmap of a range with 20 host bits has 128 KiB. */
const MOST_HOST_BITS = 20;

/** Makes the checks of `cmd/kube-apiserver/app/options/{completion,validation}.go`, with the same messages. */
export function checkServiceRanges({ serviceClusterIPRange: text, allocator }: SpecDraft, report: Report): void {
  if (text === undefined) return;
  const entries = serviceRangeEntries(text);
  if (entries.length === 0) report([FIELD], '--service-cluster-ip-range must contain at least one valid cidr', EXAMPLE);
  const at = (index: number) => (typeof text === 'string' ? [FIELD] : [FIELD, index]);
  const { primary, secondary } = readServiceRanges(text);
  if (entries[0] !== undefined && primary === undefined) {
    report(at(0), 'service-cluster-ip-range[0] is not a valid cidr', EXAMPLE);
  }
  if (primary !== undefined && rangeSize(primary) < FEWEST_ADDRESSES) {
    // Upstream computes a size of 0 for prefix lengths 0 and 1, so the advice also states the lowest prefix length.
    report(at(0), TOO_SMALL, `use a prefix length from 2 to ${LONGEST_PREFIX[primary.family]}`);
  }
  if (entries[1] !== undefined && secondary === undefined) {
    report(at(1), 'service-cluster-ip-range[1] is not an ip net', EXAMPLE);
  }
  if (entries.length > 2) {
    report([FIELD], '--service-cluster-ip-range must not contain more than two entries', EXAMPLE);
  }
  if (primary !== undefined && secondary?.family === primary.family) {
    report(at(1), SAME_FAMILY, 'make one IPv4 and the other IPv6');
  }
  if (allocator !== 'table') return;
  checkHostBits(at(0), primary, '--service-cluster-ip-range', report);
  checkHostBits(at(1), secondary, '--service-cluster-ip-range[1]', report);
}

const EXAMPLE =
  'write an address and a prefix length, such as 10.0.0.0/24 or fd00:10::/112; at most one of each family';
const LONGEST_PREFIX = { IPv4: 29, IPv6: 125 };
const TOO_SMALL =
  'error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses';
const SAME_FAMILY = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family';

function checkHostBits(at: SpecPath, network: Network | undefined, flag: string, report: Report): void {
  if (network === undefined || hostBits(network) <= MOST_HOST_BITS) return;
  const width = hostBits(network) + network.prefixLength;
  const shortest = width - MOST_HOST_BITS;
  const message = `specified ${flag} is too large; for ${width}-bit addresses, the mask must be >= ${shortest}`;
  report(at, message, `use a prefix length of ${shortest} or more, or let the API servers allocate`);
}

const OWN_PORT_NAME = 'https';

export function checkNodePortRange({ serviceNodePortRange: text }: SpecDraft, report: Report): void {
  const ports = text === undefined ? undefined : readNodePortRange(text);
  if (!isRefused(ports)) return;
  const message = ports.message.startsWith('strconv')
    ? `${JSON.stringify(text)} is not a range of ports`
    : ports.message;
  report(['serviceNodePortRange'], message, 'write the first and the last port, such as 30000-32767');
}

/** Checks that a dual-stack Service has two ranges and no reconciler `master-count`, which has one count for both families. */
export function checkFamilies(draft: SpecDraft, report: Report): void {
  const { service, endpoints, serviceClusterIPRange: ranges } = draft;
  if (service?.ipFamilyPolicy !== 'PreferDualStack') return;
  const at = ['service', 'ipFamilyPolicy'];
  if (endpoints?.reconciler === 'master-count') {
    report(at, 'PreferDualStack requires leases', 'set endpoints.reconciler to lease');
  } else if (ranges !== undefined && serviceRangeEntries(ranges).length < 2) {
    report(at, 'PreferDualStack requires two ranges', 'add a range of the other family to serviceClusterIPRange');
  }
}

/** Checks the ports of the Service and of its endpoints, with messages of `cmd/kube-apiserver/app/options/validation.go`. */
export function checkPorts(draft: SpecDraft, report: Report): void {
  const { nodePort: own, extraPorts = [] } = draft.service ?? {};
  checkInNodePortRange(draft, ['service', 'nodePort'], own, report);
  checkPortNames(['endpoints', 'extraPorts'], draft.endpoints?.extraPorts ?? [], report);
  checkPortNames(['service', 'extraPorts'], extraPorts, report);
  for (const [index, port] of extraPorts.entries()) {
    const at = ['service', 'extraPorts', index, 'nodePort'];
    if (port?.nodePort === undefined || checkInNodePortRange(draft, at, port.nodePort, report) || own !== 0) continue;
    const fix = 'leave it out, or set service.nodePort, which makes the Service a NodePort one';
    report(at, 'a Service of type ClusterIP has no node ports', fix);
  }
  checkClashes(draft, report);
}

type Named = { readonly name?: string | undefined } | undefined;

function checkPortNames(list: SpecPath, ports: readonly Named[], report: Report): void {
  const first = firstIndexes(ports.map((port) => port?.name));
  for (const [index, { name } = {}] of ports.entries()) {
    const at = [...list, index, 'name'];
    if (name === undefined) continue;
    if (name === OWN_PORT_NAME) report(at, `${name} is the API servers' own port`, 'give it another name');
    else if (first.get(name) !== index) report(at, `${name} is there already`, 'give each port a name of its own');
  }
}

/** Reports a node port outside the range. Returns true if it reported the node port. */
function checkInNodePortRange(draft: SpecDraft, at: SpecPath, nodePort: number | undefined, report: Report): boolean {
  const range = draft.serviceNodePortRange === undefined ? undefined : readNodePortRange(draft.serviceNodePortRange);
  if (!nodePort || range === undefined || isRefused(range) || containsPort(range, nodePort)) return false;
  const text = portIntervalText(range);
  const message = `kubernetes service node port range ${text} doesn't contain ${nodePort}`;
  report(at, message, `choose a port of ${text}, or change serviceNodePortRange`);
  return true;
}

/** Reports ports and node ports that occur twice for one protocol, because the API refuses such a Service. */
function checkClashes({ service }: SpecDraft, report: Report): void {
  const { port, nodePort, extraPorts = [] } = service ?? {};
  const own = { protocol: 'TCP', port, nodePort: nodePort || undefined };
  const taken = new Map<string, string>();
  for (const [index, ports] of [own, ...extraPorts].entries()) {
    const at = index === 0 ? ['service'] : ['service', 'extraPorts', index - 1];
    for (const field of ['port', 'nodePort'] as const) {
      if (ports?.protocol === undefined || ports[field] === undefined) continue;
      const claim = `${ports.protocol} ${field} ${ports[field]}`;
      const owner = taken.get(claim);
      if (owner === undefined) taken.set(claim, pathText(at));
      else report([...at, field], `${owner} has ${claim} already`, 'choose another port');
    }
  }
}
