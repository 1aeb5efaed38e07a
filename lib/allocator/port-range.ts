import { containsPort, type PortInterval, parsePortInterval, portIntervalText } from './port-interval.ts';
import { type PickIndex, RangeAllocator, type RangeKind, reservedPorts } from './range-allocator.ts';
import { isRefused, type Refusal, refused } from './refusal.ts';

/**
 * Returns the range of the node ports of a cluster (`pkg/registry/core/service/portallocator/allocator.go`). Every port in
 * the range is usable.
 */
export function portRangeOf(text: string, pick: PickIndex): RangeAllocator<number> | Refusal {
  const ports = parsePortInterval(text);
  return isRefused(ports) ? ports : new RangeAllocator(portsOf(ports), pick);
}

function portsOf(ports: PortInterval): RangeKind<number> {
  const spec = portIntervalText(ports);
  return {
    spec,
    max: ports.size,
    reserved: reservedPorts(ports.size),
    indexOf: (port) => (Number.isInteger(port) && containsPort(ports, port) ? port - ports.base : undefined),
    itemAt: (index) => ports.base + index,
    parse: (text) => (/^\d+$/.test(text) ? Number(text) : Number.NaN),
    notInRange: () =>
      refused('NotInRange', `provided port is not in the valid range. The range of valid ports is ${spec}`),
    alreadyAllocated: () => refused('AlreadyAllocated', 'provided port is already allocated'),
  };
}
