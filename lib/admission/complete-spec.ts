import { familyOf } from '../allocator/ip-address.ts';
import {
  getsHealthCheckPort,
  getsNodePorts,
  hasClusterIP,
  isHeadless,
  type ServicePort,
  type ServiceSpec,
  sameTexts,
} from './service.ts';

/*
 * What the registry makes of a Service before it allocates (`pkg/registry/core/service/storage/storage.go`). A webhook
 * sees the object as it was sent, so that it has to work this out to know what is still missing.
 */

/** The singular `clusterIP` of an old client, as the plural. */
export function completeNew(spec: ServiceSpec): ServiceSpec {
  const { clusterIP, clusterIPs } = spec;
  return clusterIP !== '' && clusterIPs.length === 0 ? { ...spec, clusterIPs: [clusterIP] } : spec;
}

/** A stored Service as it is read: what was written before there were families has them, too. */
export function asRead(stored: ServiceSpec): ServiceSpec {
  const spec = completeNew(stored);
  if (!hasClusterIP(spec) || spec.ipFamilies.length > 0 || isHeadless(spec)) return spec;
  const ipFamilies = spec.clusterIPs.map((address) => (familyOf(address) === 'IPv6' ? 'IPv6' : 'IPv4'));
  const ipFamilyPolicy = ipFamilies.length === 2 ? 'RequireDualStack' : 'SingleStack';
  return { ...spec, ipFamilies, ...(ipFamilies.length > 0 && { ipFamilyPolicy }) };
}

/** The new object of an update with what its sender left out and the old one has. `before` is as it is read. */
export function completeUpdate(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  return syncClusterIPs(withHealthCheckPort(withNodePorts(withClusterIPs(after, before), before), before), before);
}

function withClusterIPs(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  if (!hasClusterIP(before) || !hasClusterIP(after)) return after;
  return {
    ...after,
    clusterIP: after.clusterIP === '' ? before.clusterIP : after.clusterIP,
    clusterIPs: after.clusterIPs.length === 0 ? before.clusterIPs : after.clusterIPs,
  };
}

/** By the names of ports; a number that another port has taken over is not given twice. */
function withNodePorts(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  if (!getsNodePorts(before) || !getsNodePorts(after)) return after;
  const still = numbersOf(after.ports);
  const byName = new Map(before.ports.map(({ name, nodePort }) => [name, nodePort]));
  const complete = (port: ServicePort): ServicePort => {
    const nodePort = byName.get(port.name) ?? 0;
    return port.nodePort !== 0 || still.has(nodePort) ? port : { ...port, nodePort };
  };
  return { ...after, ports: after.ports.map(complete) };
}

function withHealthCheckPort(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  if (!getsHealthCheckPort(before) || !getsHealthCheckPort(after) || after.healthCheckNodePort !== 0) return after;
  return { ...after, healthCheckNodePort: before.healthCheckNodePort };
}

/** Who changed or cleared the singular alone meant both. */
function syncClusterIPs(after: ServiceSpec, before: ServiceSpec): ServiceSpec {
  if (before.clusterIP === after.clusterIP) {
    return after.clusterIPs.length === 0 ? { ...after, clusterIPs: before.clusterIPs } : after;
  }
  if (!sameTexts(before.clusterIPs, after.clusterIPs)) return after;
  return { ...after, clusterIPs: after.clusterIP === '' ? [] : [after.clusterIP] };
}

export function numbersOf(ports: readonly ServicePort[]): Set<number> {
  return new Set(ports.map(({ nodePort }) => nodePort).filter((number) => number !== 0));
}
