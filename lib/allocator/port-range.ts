import { type PickIndex, RangeAllocator, type RangeKind, reservedPorts } from './range-allocator.ts';
import { isRefused, type Refusal, refused } from './refusal.ts';

export interface PortInterval {
  readonly base: number;
  readonly size: number;
}

const HIGHEST_PORT = 65_535;

/**
 * Parses `N`, `A-B`, `A+N` (A and the N ports after it) or an empty range as `PortRange` of `k8s.io/apimachinery` does.
 *
 *     parsePortInterval('30000-30003') // { base: 30000, size: 4 }
 *     parsePortInterval('30000+3')     // the same
 */
export function parsePortInterval(text: string): PortInterval | Refusal {
  const trimmed = text.trim();
  if (trimmed === '') return { base: 0, size: 0 };
  const [hasHyphen, hasPlus] = [trimmed.includes('-'), trimmed.includes('+')];
  if (hasHyphen && hasPlus) return unparsable(`unable to parse port range: ${trimmed}`);
  const [first = '', second = first] = trimmed.split(/[-+](.*)/s);
  const low = parseInteger(first);
  if (isRefused(low)) return low;
  const end = parseInteger(second);
  if (isRefused(end)) return end;
  const high = hasPlus ? low + end : end;
  if (low > HIGHEST_PORT || high > HIGHEST_PORT) {
    return unparsable(`the port range cannot be greater than 65535: ${trimmed}`);
  }
  if (high < low) return unparsable(`end port cannot be less than start port: ${trimmed}`);
  return { base: low, size: 1 + high - low };
}

/** Returns `base-last`, or an empty text for an empty range. */
export function portIntervalText({ base, size }: PortInterval): string {
  return size === 0 ? '' : `${base}-${base + size - 1}`;
}

export function containsPort({ base, size }: PortInterval, port: number): boolean {
  return port >= base && port < base + size;
}

/** Parses an integer as Go's `strconv.Atoi` does: an optional sign, then decimal digits, in 64 bits. */
function parseInteger(text: string): number | Refusal {
  const value = /^[+-]?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(value) < 2 ** 63) return value;
  const fault = Number.isNaN(value) ? 'invalid syntax' : 'value out of range';
  return unparsable(`strconv.Atoi: parsing ${JSON.stringify(text)}: ${fault}`);
}

function unparsable(message: string): Refusal {
  return refused('Unparsable', message);
}

/** Returns the range of the node ports of a cluster (`pkg/registry/core/service/portallocator/allocator.go`). */
export function portRangeOf(text: string, pick: PickIndex): RangeAllocator | Refusal {
  const ports = parsePortInterval(text);
  return isRefused(ports) ? ports : new RangeAllocator(portsOf(ports), pick);
}

function portsOf(ports: PortInterval): RangeKind {
  const spec = portIntervalText(ports);
  return {
    spec,
    max: ports.size,
    reserved: reservedPorts(ports.size),
    indexOf: (text) => {
      const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
      return containsPort(ports, port) ? port - ports.base : undefined;
    },
    itemAt: (index) => String(ports.base + index),
    notInRange: () =>
      refused('NotInRange', `provided port is not in the valid range. The range of valid ports is ${spec}`),
    alreadyAllocated: () => refused('AlreadyAllocated', 'provided port is already allocated'),
  };
}
