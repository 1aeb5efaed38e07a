import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { type ClaimedRange, type ClaimWords, type EnterClaims, RepairError, reportClaim } from './claims.ts';

export const NODE_PORT_WORDS: ClaimWords = {
  item: 'node port',
  noteItem: 'Port',
  shortItem: 'port',
  range: 'port range',
  action: 'PortAllocation',
  reasons: {
    notAllocated: 'PortNotAllocated',
    duplicate: 'PortAlreadyAllocated',
    outOfRange: 'PortOutOfRange',
    full: 'PortRangeFull',
  },
  full: () => 'is full; you must widen the port range in order to create new services',
};

/** Returns a function that enters the node ports of a Service. @throws RepairError `BadRange` if there is no range or several */
export function nodePortClaims([range, ...others]: readonly ClaimedRange[]): EnterClaims {
  if (range === undefined || others.length > 0) {
    throw new RepairError('BadRange', 'node ports have one range: correct the cluster spec');
  }
  return (service, findings) => {
    for (const port of nodePortsOf(service).map(String)) {
      const result = range.claim(port, service);
      if (result === 'recorded') continue;
      const claim = { service, item: port, shown: port, range: range.spec };
      const aborted = reportClaim(NODE_PORT_WORDS, claim, result, findings);
      if (aborted !== undefined) return aborted;
    }
    return undefined;
  };
}

/**
 * Returns the node ports that a Service claims (upstream's `collectServiceNodePorts`). A node port with several protocols is
 * claimed once. A node port that occurs twice with the same protocol is claimed twice, and the second claim is a duplicate. The
 * health check port counts as TCP.
 */
export function nodePortsOf(service: ServiceClaim): readonly number[] {
  const { ports, healthCheckNodePort } = service;
  const protocols = new Map<number, Set<string>>();
  const claims: number[] = [];
  for (const { nodePort, protocol } of [...ports, { nodePort: healthCheckNodePort, protocol: 'TCP' }]) {
    if (nodePort === 0) continue;
    const seen = protocols.get(nodePort);
    if (seen === undefined) protocols.set(nodePort, new Set([protocol]));
    if (seen === undefined || seen.has(protocol)) claims.push(nodePort);
    else seen.add(protocol);
  }
  return claims;
}
