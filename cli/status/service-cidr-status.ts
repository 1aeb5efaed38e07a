import { parseAddress } from '../../lib/allocator/ip-address.ts';
import { type Network, networkContains, parseCidr, rangeSize, usableSize } from '../../lib/allocator/network.ts';
import { reservedAddresses } from '../../lib/allocator/range-allocator.ts';
import { isRefused } from '../../lib/allocator/refusal.ts';
import { type ServiceCidrUsage, serviceCidrUsageIn } from '../../lib/cluster/service-cidr-usage.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import type { RunRecord } from '../../lib/table/run-records.ts';
import type { RangeMap, RangeStatus } from './cluster-status.ts';
import { drawRange, drawUsage, type NetworkUsage } from './range-map.ts';
import { figures, TITLES, textRange } from './range-status.ts';
import type { SavedRange, StatusInputs } from './read-inputs.ts';

/**
 * Returns the usage of each ServiceCIDR that the last pass found, preceded by the total of a family with several ServiceCIDRs.
 * Returns `undefined` if the table allocates or no pass read ServiceCIDRs.
 */
export function serviceCidrStatuses(inputs: StatusInputs): RangeStatus[] | undefined {
  const { cluster, records } = inputs;
  const record = records['cluster-ip-repair'];
  const usage = cluster.spec.allocator === 'apiserver' ? serviceCidrUsageIn(record?.state) : undefined;
  return usage?.sums.flatMap((sum, index) => {
    const key = index === 0 ? RANGE_KEYS.primary : RANGE_KEYS.secondary;
    const own = usage.networks.flatMap((one) => {
      const network = parseCidr(one.cidr);
      return network?.family === sum.family ? [{ ...one, network }] : [];
    });
    const statuses = own.map((one) => networkStatus(key, one, record, inputs));
    return sum.networks === 1 ? statuses : [sumStatus(key, sum, statuses), ...statuses.map(asPart)];
  });
}

type Sum = ServiceCidrUsage['sums'][number];
type CidrUsage = ServiceCidrUsage['networks'][number] & { readonly network: Network };

function networkStatus(
  key: RangeStatus['key'],
  { name, network, ready, used, cells }: CidrUsage,
  record: RunRecord | undefined,
  { cluster, ranges }: StatusInputs,
): RangeStatus {
  const capacity = usableSize(network);
  const isIn = (text: string) => {
    const address = parseAddress(text);
    return address !== undefined && networkContains(network, address);
  };
  const items = (type: string) => [
    ...new Set(
      (record?.findings ?? []).flatMap((one) => (one.type === type && isIn(one.item ?? '') ? [one.item ?? ''] : [])),
    ),
  ];
  const duplicates = items('duplicate');
  const reserved = reservedAddresses(Number(rangeSize(network)));
  const saved = ranges?.find(
    ({ stored }) => stored.range === network.text && stored.generation === cluster.rangesGeneration,
  );
  const map = ranges && drawMap(network, { cells, reserved, duplicates }, saved);
  return {
    key,
    title: TITLES[key],
    range: network.text,
    serviceCidr: name,
    ...(!ready && { ready }),
    allocator: 'apiserver',
    ...figures(used, capacity),
    reserved,
    leaking: items('leakedRecord').length,
    duplicates: duplicates.length,
    ...(map && { map }),
  };
}

function asPart(status: RangeStatus): RangeStatus {
  return { ...status, title: `${status.title} of ServiceCIDR ${status.serviceCidr}`, part: true };
}

function sumStatus(
  key: RangeStatus['key'],
  { family, networks, used, capacity }: Sum,
  parts: readonly RangeStatus[],
): RangeStatus {
  const total = (figure: 'leaking' | 'duplicates') => parts.reduce((sum, part) => sum + part[figure], 0);
  return {
    key,
    title: TITLES[key],
    range: `${networks} ServiceCIDRs of ${family}`,
    sumOf: networks,
    allocator: 'apiserver',
    ...figures(used, capacity),
    leaking: total('leaking'),
    duplicates: total('duplicates'),
  };
}

/**
 * Draws the map of a ServiceCIDR. Uses the usage bitmap if there is one, because it shows more than the counts. There is one only
 * if the ServiceCIDR is also a range of the spec.
 */
function drawMap(network: Network, usage: NetworkUsage, saved: SavedRange | undefined): RangeMap | undefined {
  const range = saved && textRange(saved.key, network.text);
  if (range === undefined || isRefused(range)) return drawUsage(network, usage);
  const none = new Uint8Array(0);
  const duplicates = range.bitsOf(usage.duplicates);
  return drawRange(range, { used: saved?.stored.data ?? none, held: none, leaking: none, duplicates });
}
