import { NAME, type ServicePort, type ServiceSpec } from './service.ts';

const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer'];
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'];
const LARGEST_PORT = 65_535;

/**
 * Whether the registry may accept the type and the ports of a Service that gets a ClusterIP (`ValidateService` of
 * `pkg/apis/core/validation`). It validates after it allocates, so a Service that fails would leave behind what it was given.
 */
export function mayBeAccepted({ type, ports }: ServiceSpec): boolean {
  return (
    TYPES.includes(type) &&
    ports.length > 0 &&
    ports.every((port) => isPort(port, ports.length > 1)) &&
    areUnique(ports.flatMap(({ name }) => (name === '' ? [] : [name]))) &&
    areUnique(ports.map(({ protocol, port }) => `${protocol}/${port}`))
  );
}

function isPort({ name, protocol, port }: ServicePort, needsName: boolean): boolean {
  const isNamed = name === '' ? !needsName : NAME.test(name);
  return isNamed && PROTOCOLS.includes(protocol) && port >= 1 && port <= LARGEST_PORT;
}

function areUnique(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}
