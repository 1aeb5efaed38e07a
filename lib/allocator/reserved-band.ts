/**
 * The rule for the lowest items, which a dynamic allocation uses last, so that a certain item can still be requested
 * (`calculateRangeOffset` in `pkg/registry/core/service/{ipallocator,portallocator}`).
 */
interface BandRule {
  /** Ranges of at most this size reserve nothing; larger ones at least this much. */
  readonly least: number;
  readonly most: number;
  /** One in this many items is reserved. */
  readonly step: number;
}

const IP_BAND: BandRule = { least: 16, most: 256, step: 16 };
const PORT_BAND: BandRule = { least: 16, most: 128, step: 32 };

/** `rangeSize` includes the unusable addresses of the CIDR. */
export function reservedAddresses(rangeSize: number): number {
  return reserved(rangeSize, IP_BAND);
}

export function reservedPorts(ports: number): number {
  return reserved(ports, PORT_BAND);
}

function reserved(size: number, { least, most, step }: BandRule): number {
  return size <= least ? 0 : Math.min(Math.max(least, Math.floor(size / step)), most);
}
