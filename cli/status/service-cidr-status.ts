import { parseAddress } from '../../lib/allocator/ip-address.ts';
import { type Network, networkContains, parseCidr, rangeSize, usableSize } from '../../lib/allocator/network.ts';
import { reservedAddresses } from '../../lib/allocator/range-allocator.ts';
import { type ServiceCidrUsage, serviceCidrUsageIn } from '../../lib/cluster/service-cidr-usage.ts';
import { RANGE_KEYS } from '../../lib/spec/spec-ranges.ts';
import type { RunRecord } from '../../lib/table/run-records.ts';
import { defined } from '../../lib/util/values.ts';
import type { RangeStatus } from './cluster-status.ts';
import { drawUsage } from './range-map.ts';
import { countedRange } from './range-status.ts';
import type { StatusInputs } from './read-inputs.ts';

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
    const statuses = own.map((one) => networkStatus(key, one, record, inputs.ranges !== undefined));
    if (sum.networks === 1) return statuses;
    const parts = statuses.map(
      (one): RangeStatus => ({ ...one, title: `${one.title} of ServiceCIDR ${one.serviceCidr}`, part: true }),
    );
    return [sumStatus(key, sum, statuses), ...parts];
  });
}

type Sum = ServiceCidrUsage['sums'][number];
type CidrUsage = ServiceCidrUsage['networks'][number] & { readonly network: Network };

function networkStatus(
  key: RangeStatus['key'],
  { name, network, ready, used, cells }: CidrUsage,
  record: RunRecord | undefined,
  withMap: boolean,
): RangeStatus {
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
  const map = withMap ? drawUsage(network, { cells, reserved, duplicates }) : undefined;
  return countedRange({
    key,
    range: network.text,
    serviceCidr: name,
    ...(!ready && { ready }),
    allocator: 'apiserver',
    used,
    capacity: usableSize(network),
    reserved,
    leaking: items('leakedRecord').length,
    duplicates: duplicates.length,
    ...defined({ map }),
  });
}

function sumStatus(
  key: RangeStatus['key'],
  { family, networks, used, capacity }: Sum,
  parts: readonly RangeStatus[],
): RangeStatus {
  const total = (figure: 'leaking' | 'duplicates') => parts.reduce((sum, part) => sum + part[figure], 0);
  return countedRange({
    key,
    range: `${networks} ServiceCIDRs of ${family}`,
    sumOf: networks,
    allocator: 'apiserver',
    used,
    capacity,
    leaking: total('leaking'),
    duplicates: total('duplicates'),
  });
}
