import type { ApiServerSpec, ClusterSpec } from './cluster-spec.ts';
import { SPEC_DEFAULTS } from './spec-shape.ts';

/**
 * A spec as a person writes it in a file: what has its default is left out. What is read from it again
 * (`validateClusterSpec`) is the same spec.
 */
export function writtenSpec({ apiServers, serviceClusterIPRanges, ...spec }: ClusterSpec): object {
  const { name, mode, kubeconfig, ...rest } = spec;
  const [primary, secondary] = serviceClusterIPRanges;
  const serviceClusterIPRange = secondary === undefined ? primary : [primary, secondary];
  const written = { apiServers: apiServers.map(writtenApiServer), serviceClusterIPRange, ...rest };
  return { name, mode, kubeconfig, ...differing(written, SPEC_DEFAULTS) };
}

function writtenApiServer({ probe: { url, path, ...probe }, ...server }: ApiServerSpec): object {
  const asked = { ...(url === undefined ? { path } : { url }), ...probe };
  return differing({ ...server, probe: asked }, 'host' in server ? HOST_DEFAULTS : ADDRESS_DEFAULTS);
}

const PROBE_DEFAULTS = { path: '/readyz', authenticate: false };
const ADDRESS_DEFAULTS = { kind: 'server', probe: PROBE_DEFAULTS };
const HOST_DEFAULTS = { kind: 'shared', probe: PROBE_DEFAULTS };

/** The fields whose values are not those of `defaults`; of a mapping, those of its fields. */
function differing(value: object, defaults: object): object {
  const known = new Map<string, unknown>(Object.entries(defaults));
  const fields = Object.entries(value).flatMap(([field, own]): [string, unknown][] => {
    const usual = known.get(field);
    if (!isMapping(own) || !isMapping(usual)) return same(own, usual) ? [] : [[field, own]];
    const left = differing(own, usual);
    return Object.keys(left).length === 0 ? [] : [[field, left]];
  });
  return Object.fromEntries(fields);
}

/** Texts, numbers, and lists of texts: lists of anything else are empty by default. */
function same(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

function isMapping(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
