import { BitmapRange, type RangeKind } from './bitmap-range.ts';
import { AllocatorError } from './errors.ts';
import { containsPort, type PortInterval, parsePortInterval, portIntervalText } from './port-interval.ts';
import type { Pick } from './range-allocator.ts';
import { reservedPorts } from './reserved-band.ts';

/** The node ports of a cluster (`pkg/registry/core/service/portallocator/allocator.go`); every port of the range is usable. */
export class PortRange extends BitmapRange<number> {
  constructor(ports: PortInterval, pick: Pick) {
    super(portsOf(ports), pick);
  }
}

export function portRangeOf(text: string, pick: Pick): PortRange | AllocatorError {
  const ports = parsePortInterval(text);
  return ports instanceof AllocatorError ? ports : new PortRange(ports, pick);
}

function portAlreadyAllocated(): AllocatorError {
  return new AllocatorError('AlreadyAllocated', 'provided port is already allocated');
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
      new AllocatorError('NotInRange', `provided port is not in the valid range. The range of valid ports is ${spec}`),
    alreadyAllocated: portAlreadyAllocated,
    // Another text of the same ports is another range.
    mismatch: (range) =>
      range === spec
        ? undefined
        : new AllocatorError('MismatchedRange', 'the provided port range does not match the current port range'),
  };
}
