import { AllocatorError } from '../allocator/errors.ts';
import { containsPort, type PortInterval, parsePortInterval, portIntervalText } from '../allocator/port-interval.ts';
import { isDnsLabel } from './dns-names.ts';
import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import { type ServicePortDraft, SPEC_DEFAULTS, type SpecDraft } from './spec-shape.ts';

/** The name of the API servers' own port, in the Service as in its endpoints. */
const OWN_PORT_NAME = 'https';
const HIGHEST_PORT = 65_535;

/** `30000-32767`, `30000+2767` or one port; no ports at all are the default range, as with `--service-node-port-range`. */
export function readNodePortRange(text: string | number): PortInterval | AllocatorError {
  const ports = parsePortInterval(String(text));
  return ports instanceof AllocatorError || ports.size > 0
    ? ports
    : parsePortInterval(SPEC_DEFAULTS.serviceNodePortRange);
}

export function nodePortRangeFaults({ serviceNodePortRange: text }: SpecDraft): SpecFault[] {
  const ports = text === undefined ? undefined : readNodePortRange(text);
  if (!(ports instanceof AllocatorError)) return [];
  return [fault(['serviceNodePortRange'], ports.message, 'write the first and the last port, such as 30000-32767')];
}

/** The ports of the kubernetes Service itself; messages of `cmd/kube-apiserver/app/options/validation.go`. */
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
  const names = ports.map((port) => port?.name);
  return ports.flatMap((port, index) => [
    ...portFaults([...at, index, 'port'], port?.port),
    ...portNameFaults([...at, index, 'name'], port?.name, names.slice(0, index)),
  ]);
}

function portNameFaults(at: SpecPath, name: string | undefined, before: readonly (string | undefined)[]): SpecFault[] {
  if (name === undefined) return [];
  if (name === OWN_PORT_NAME) return [fault(at, `${name} is the API servers' own port`, 'give it another name')];
  if (before.includes(name)) return [fault(at, `${name} is there already`, 'give each port a name of its own')];
  if (isDnsLabel(name)) return [];
  return [fault(at, `${JSON.stringify(name)} is no port name`, 'use a-z, 0-9 and hyphens inside, at most 63 of them')];
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
  if (nodePort === undefined || nodePort <= 0 || range === undefined || range instanceof AllocatorError) return [];
  if (containsPort(range, nodePort)) return [];
  const text = portIntervalText(range);
  const message = `kubernetes service node port range ${text} doesn't contain ${nodePort}`;
  return [fault(at, message, `choose a port of ${text}, or change serviceNodePortRange`)];
}

/** The API refuses a Service that has the same port, or the same node port, of one protocol twice. */
function clashes(draft: SpecDraft, ports: readonly (ServicePortDraft | undefined)[]): SpecFault[] {
  const taken = new Map<string, string>();
  const { port: ownPort, nodePort: ownNodePort } = draft.service ?? {};
  if (ownPort !== undefined) taken.set(`TCP port ${ownPort}`, 'service.port');
  if (ownNodePort) taken.set(`TCP node port ${ownNodePort}`, 'service.nodePort');

  return ports.flatMap((port, index) =>
    (['port', 'nodePort'] as const).flatMap((field) => {
      const at = ['service', 'extraPorts', index, field];
      // No protocol at all is TCP; one that is none was told already.
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
  return [fault(at, `${port} is no port`, 'write a number from 1 to 65535')];
}

function isPort(port: number): boolean {
  return port >= 1 && port <= HIGHEST_PORT;
}
