import type { IPFamily } from '../allocator/ip-address.ts';
import { hostBits, type Network, parseCidr, rangeSize } from '../allocator/network.ts';
import type { AllocatorOfRecord } from './cluster-spec.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import { SPEC_DEFAULTS } from './spec-shape.ts';

/** What of the service ranges could be read. */
export interface ServiceRanges {
  readonly primary?: Network;
  readonly secondary?: Network;
}

export type ServiceRangesText = string | readonly (string | undefined)[];

const FIELD = 'serviceClusterIPRange';
const FEWEST_ADDRESSES = 8n;
/** Larger ones do not fit a bitmap that is kept in one item. */
const MOST_HOST_BITS = 20;

/**
 * `10.0.0.0/24`, `10.0.0.0/16,fd00::/108` or a list of the same. No text at all is the default range; no text between
 * commas is trimmed, as with `--service-cluster-ip-range`.
 */
export function readServiceRanges(text: ServiceRangesText): ServiceRanges {
  const [primary, secondary] = entriesOf(text).map((entry) => (entry === undefined ? undefined : parseCidr(entry)));
  return { ...(primary && { primary }), ...(secondary && { secondary }) };
}

/**
 * The checks of `cmd/kube-apiserver/app/options/{completion,validation}.go`, in their words. That nothing has more
 * than 20 host bits is asked only where the table allocates, as the original asked it for its bitmap.
 */
export function serviceRangeFaults(text: ServiceRangesText, allocator: AllocatorOfRecord | undefined): SpecFault[] {
  const entries = entriesOf(text);
  if (entries.length === 0) {
    return [fault([FIELD], '--service-cluster-ip-range must contain at least one valid cidr', EXAMPLE)];
  }
  const at = (index: number) => (typeof text === 'string' ? [FIELD] : [FIELD, index]);
  const { primary, secondary } = readServiceRanges(text);
  const faults: SpecFault[] = [];

  if (entries[0] !== undefined && primary === undefined) {
    faults.push(fault(at(0), 'service-cluster-ip-range[0] is not a valid cidr', EXAMPLE));
  }
  if (primary !== undefined && !isLargeEnough(primary)) faults.push(fault(at(0), TOO_SMALL, sizeFix(primary)));
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

function entriesOf(text: ServiceRangesText): readonly (string | undefined)[] {
  if (typeof text !== 'string') return text;
  return (text === '' ? SPEC_DEFAULTS[FIELD] : text).split(',');
}

function isLargeEnough(network: Network): boolean {
  return rangeSize(network) >= FEWEST_ADDRESSES;
}

/** A prefix of 0 or 1 counts as no addresses, so there is an end on both sides. */
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
