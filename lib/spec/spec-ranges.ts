import type { ClusterSpec, Loop } from './cluster-spec.ts';

/** The keys of the ranges, which are the etcd keys without the prefix: primary and secondary cluster IPs, and node ports. */
export const RANGE_KEYS = {
  primary: 'ranges/serviceips',
  secondary: 'ranges/secondaryserviceips',
  nodePorts: 'ranges/servicenodeports',
} as const;
export type RangeKey = (typeof RANGE_KEYS)[keyof typeof RANGE_KEYS];

export interface SpecRange {
  readonly key: RangeKey;
  /** The canonical text of the range: a CIDR, or a port range such as `30000-32767`. */
  readonly configured: string;
  readonly loop: Loop;
}

/** Returns the ranges of a spec, in the order of {@link RANGE_KEYS}. */
export function rangesOf({
  serviceClusterIPRanges: [primary, secondary],
  serviceNodePortRange,
}: Pick<ClusterSpec, 'serviceClusterIPRanges' | 'serviceNodePortRange'>): readonly SpecRange[] {
  const configured: readonly (readonly [RangeKey, string | undefined])[] = [
    [RANGE_KEYS.primary, primary],
    [RANGE_KEYS.secondary, secondary],
    [RANGE_KEYS.nodePorts, serviceNodePortRange],
  ];
  return configured.flatMap(([key, text]) =>
    text === undefined ? [] : [{ key, configured: text, loop: repairLoopOf(key) }],
  );
}

/** Returns the name by which a pass reports a figure of a range: `allocated`, but `secondaryAllocated` for the secondary range. */
export function figureOf(key: RangeKey, name: string): string {
  return key === RANGE_KEYS.secondary ? `secondary${name.charAt(0).toUpperCase()}${name.slice(1)}` : name;
}

export function repairLoopOf(key: RangeKey): Loop {
  return key === RANGE_KEYS.nodePorts ? 'node-port-repair' : 'cluster-ip-repair';
}
