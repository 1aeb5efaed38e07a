import type { IPFamily } from '../../lib/allocator/ip-address.ts';
import { hostBits, type Network, rangeSize } from '../../lib/allocator/network.ts';
import { containsPort, portIntervalText } from '../../lib/allocator/port-interval.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import type { AllocatorOfRecord } from '../../lib/cluster/cluster-spec.ts';
import {
  readNodePortRange,
  readServiceRanges,
  type ServiceRangesText,
  serviceRangeEntries,
} from '../../lib/cluster/spec-parts.ts';
import { firstIndexes } from '../../lib/cluster/values.ts';
import { isDnsLabel } from './names.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import type { ServicePortDraft, SpecDraft } from './spec-shape.ts';

const FIELD = 'serviceClusterIPRange';
const FEWEST_ADDRESSES = 8n;
/** Larger ranges do not fit a bitmap in one item. */
const MOST_HOST_BITS = 20;

/**
 * Checks as `cmd/kube-apiserver/app/options/{completion,validation}.go`, with the same messages. The limit of 20 host
 * bits applies only if the table allocates, as upstream for its bitmap.
 */
export function serviceRangeFaults(text: ServiceRangesText, allocator: AllocatorOfRecord | undefined): SpecFault[] {
  const entries = serviceRangeEntries(text);
  if (entries.length === 0) {
    return [fault([FIELD], '--service-cluster-ip-range must contain at least one valid cidr', EXAMPLE)];
  }
  const at = (index: number) => (typeof text === 'string' ? [FIELD] : [FIELD, index]);
  const { primary, secondary } = readServiceRanges(text);
  const faults: SpecFault[] = [];

  if (entries[0] !== undefined && primary === undefined) {
    faults.push(fault(at(0), 'service-cluster-ip-range[0] is not a valid cidr', EXAMPLE));
  }
  if (primary !== undefined && rangeSize(primary) < FEWEST_ADDRESSES)
    faults.push(fault(at(0), TOO_SMALL, sizeFix(primary)));
  if (entries[1] !== undefined && secondary === undefined) {
    faults.push(fault(at(1), 'service-cluster-ip-range[1] is not an ip net', EXAMPLE));
  }
  if (entries.length > 2) {
    faults.push(fault([FIELD], '--service-cluster-ip-range must not contain more than two entries', EXAMPLE));
  }
  if (primary !== undefined && secondary?.family === primary.family) {
    faults.push(fault(at(1), SAME_FAMILY, `make one ${primary.family} and the other ${otherFamily(primary.family)}`));
  }
  if (allocator !== 'table') return faults;
  const tooLarge = [
    ...hostBitFaults(at(0), primary, '--service-cluster-ip-range'),
    ...hostBitFaults(at(1), secondary, '--service-cluster-ip-range[1]'),
  ];
  return [...faults, ...tooLarge];
}

const EXAMPLE =
  'write an address and a prefix length, such as 10.0.0.0/24 or fd00:10::/112; at most one of each family';
const TOO_SMALL =
  'error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses';
const SAME_FAMILY = '--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family';

/** A prefix of 0 or 1 counts as no addresses, so both sides have a limit. */
function sizeFix({ family }: Network): string {
  return `use a prefix length from 2 to ${family === 'IPv4' ? 29 : 125}`;
}

function hostBitFaults(at: readonly (string | number)[], network: Network | undefined, flag: string): SpecFault[] {
  if (network === undefined || hostBits(network) <= MOST_HOST_BITS) return [];
  const width = hostBits(network) + network.prefixLength;
  const shortest = width - MOST_HOST_BITS;
  const message = `specified ${flag} is too large; for ${width}-bit addresses, the mask must be >= ${shortest}`;
  return [fault(at, message, `use a prefix length of ${shortest} or more, or let the API servers allocate`)];
}

function otherFamily(family: IPFamily): IPFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4';
}

const OWN_PORT_NAME = 'https';
const HIGHEST_PORT = 65_535;

export function nodePortRangeFaults({ serviceNodePortRange: text }: SpecDraft): SpecFault[] {
  const ports = text === undefined ? undefined : readNodePortRange(text);
  if (!isRefused(ports)) return [];
  const message = ports.message.startsWith('strconv')
    ? `${JSON.stringify(text)} is not a range of ports`
    : ports.message;
  return [fault(['serviceNodePortRange'], message, 'write the first and the last port, such as 30000-32767')];
}

/** Checks the ports of the kubernetes Service, with messages of `cmd/kube-apiserver/app/options/validation.go`. */
export function servicePortFaults(draft: SpecDraft): SpecFault[] {
  const { port, securePort, nodePort } = draft.service ?? {};
  const faults = [...portFaults(['service', 'port'], port)];
  if (securePort !== undefined && !isPort(securePort)) {
    const message = `--secure-port ${securePort} must be between 1 and 65535, inclusive. It cannot be turned off with 0`;
    faults.push(fault(['service', 'securePort'], message, `write the API servers' port, usually 6443`));
  }
  if (nodePort !== undefined && nodePort !== 0 && !isPort(nodePort)) {
    const message = `--kubernetes-service-node-port ${nodePort} must be between 0 and 65535, inclusive. If 0, the Kubernetes master service will be of type ClusterIP`;
    faults.push(fault(['service', 'nodePort'], message, 'write 0, or a port of serviceNodePortRange'));
  }
  return [...faults, ...nodePortRangeMembership(draft, ['service', 'nodePort'], nodePort)];
}

/** Checks that there are two families, and leases to publish them by: a master count is one number for both. */
export function ipFamilyFaults({ service, endpoints, serviceClusterIPRange: ranges }: SpecDraft): SpecFault[] {
  if (service?.ipFamilyPolicy !== 'PreferDualStack') return [];
  const at = ['service', 'ipFamilyPolicy'];
  if (endpoints?.reconciler === 'master-count') {
    return [fault(at, 'PreferDualStack requires leases', 'set endpoints.reconciler to lease')];
  }
  if (ranges === undefined || serviceRangeEntries(ranges).length > 1) return [];
  return [fault(at, 'PreferDualStack requires two ranges', 'add a range of the other family to serviceClusterIPRange')];
}

export function extraPortFaults(draft: SpecDraft): SpecFault[] {
  const servicePorts = draft.service?.extraPorts ?? [];
  const endpointPorts = draft.endpoints?.extraPorts ?? [];
  return [
    ...listedPortFaults(['service', 'extraPorts'], servicePorts),
    ...listedPortFaults(['endpoints', 'extraPorts'], endpointPorts),
    ...servicePorts.flatMap((port, index) =>
      port === undefined ? [] : extraServicePortFaults(draft, ['service', 'extraPorts', index], port),
    ),
    ...clashes(draft, servicePorts),
  ];
}

function listedPortFaults(
  at: SpecPath,
  ports: readonly ({ name?: string | undefined; port?: number | undefined } | undefined)[],
): SpecFault[] {
  const first = firstIndexes(ports.map((port) => port?.name));
  return ports.flatMap((port, index) => [
    ...portFaults([...at, index, 'port'], port?.port),
    ...portNameFaults([...at, index, 'name'], port?.name, first.get(port?.name) !== index),
  ]);
}

function portNameFaults(at: SpecPath, name: string | undefined, isRepeated: boolean): SpecFault[] {
  if (name === undefined) return [];
  if (name === OWN_PORT_NAME) return [fault(at, `${name} is the API servers' own port`, 'give it another name')];
  if (isRepeated) return [fault(at, `${name} is there already`, 'give each port a name of its own')];
  if (isDnsLabel(name)) return [];
  return [
    fault(
      at,
      `${JSON.stringify(name)} is not a valid port name`,
      'use a-z, 0-9 and hyphens inside, at most 63 of them',
    ),
  ];
}

function extraServicePortFaults(draft: SpecDraft, at: SpecPath, port: ServicePortDraft): SpecFault[] {
  const { targetPort, nodePort } = port;
  const faults = portFaults([...at, 'targetPort'], targetPort);
  if (nodePort === undefined) return faults;
  const wrong = [
    ...portFaults([...at, 'nodePort'], nodePort),
    ...nodePortRangeMembership(draft, [...at, 'nodePort'], nodePort),
  ];
  if (wrong.length === 0 && draft.service?.nodePort === 0) {
    const fix = 'leave it out, or set service.nodePort, which makes the Service a NodePort one';
    wrong.push(fault([...at, 'nodePort'], 'a Service of type ClusterIP has no node ports', fix));
  }
  return [...faults, ...wrong];
}

function nodePortRangeMembership(draft: SpecDraft, at: SpecPath, nodePort: number | undefined): SpecFault[] {
  const range = draft.serviceNodePortRange === undefined ? undefined : readNodePortRange(draft.serviceNodePortRange);
  if (nodePort === undefined || nodePort <= 0 || range === undefined || isRefused(range)) return [];
  if (containsPort(range, nodePort)) return [];
  const text = portIntervalText(range);
  const message = `kubernetes service node port range ${text} doesn't contain ${nodePort}`;
  return [fault(at, message, `choose a port of ${text}, or change serviceNodePortRange`)];
}

/** The API refuses a Service with the same port, or the same node port, twice for one protocol. */
function clashes(draft: SpecDraft, ports: readonly (ServicePortDraft | undefined)[]): SpecFault[] {
  const taken = new Map<string, string>();
  const { port: ownPort, nodePort: ownNodePort } = draft.service ?? {};
  if (ownPort !== undefined) taken.set(`TCP port ${ownPort}`, 'service.port');
  if (ownNodePort) taken.set(`TCP node port ${ownNodePort}`, 'service.nodePort');

  return ports.flatMap((port, index) =>
    (['port', 'nodePort'] as const).flatMap((field) => {
      const at = ['service', 'extraPorts', index, field];
      // Without a protocol it is TCP; the shape has reported an unknown one.
      const protocol = port !== undefined && 'protocol' in port ? port.protocol : 'TCP';
      if (protocol === undefined || port?.[field] === undefined) return [];
      const claim = `${protocol} ${field === 'port' ? 'port' : 'node port'} ${port[field]}`;
      const owner = taken.get(claim);
      taken.set(claim, owner ?? `service.extraPorts[${index}]`);
      return owner === undefined ? [] : [fault(at, `${owner} has ${claim} already`, 'choose another port')];
    }),
  );
}

function portFaults(at: SpecPath, port: number | undefined): SpecFault[] {
  if (port === undefined || isPort(port)) return [];
  return [fault(at, `${port} is not a valid port`, 'write a number from 1 to 65535')];
}

function isPort(port: number): boolean {
  return port >= 1 && port <= HIGHEST_PORT;
}
