import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';

/**
 * The node ports that a Service claims, in its own order (`collectServiceNodePorts` in
 * `pkg/registry/core/service/portallocator/controller/repair.go`). A port under several protocols is claimed once; a
 * port twice under one protocol is claimed twice, and the second claim is a duplicate. The health check port is TCP.
 */
export function nodePortsOf(service: ServiceClaim): readonly number[] {
  const { ports, healthCheckNodePort } = service;
  if (healthCheckNodePort === 0 && !ports.some(hasNodePort)) return NO_PORTS;

  const protocols = new Map<number, Set<string>>();
  const claims: number[] = [];
  for (const { nodePort, protocol } of ports) {
    if (nodePort === 0) continue;
    const seen = protocols.get(nodePort);
    if (seen === undefined) protocols.set(nodePort, new Set([protocol]));
    if (seen === undefined || seen.has(protocol)) claims.push(nodePort);
    else seen.add(protocol);
  }
  if (healthCheckNodePort !== 0) {
    const seen = protocols.get(healthCheckNodePort);
    if (seen === undefined || seen.has('TCP')) claims.push(healthCheckNodePort);
  }
  return claims;
}

const NO_PORTS: readonly number[] = [];

function hasNodePort({ nodePort }: { readonly nodePort: number }): boolean {
  return nodePort !== 0;
}
