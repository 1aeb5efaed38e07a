import { AllocatorError } from '../allocator/errors.ts';
import { canonicalAddress } from '../allocator/ip-address.ts';
import { portIntervalText } from '../allocator/port-interval.ts';
import { apiServerFaults } from './api-server-rules.ts';
import { type SpecOptions, withAutoAddress } from './auto-address.ts';
import { checkShape } from './check-shape.ts';
import type { ApiServerSpec, ClusterSpec } from './cluster-spec.ts';
import { completedKubeconfig, kubeconfigFaults } from './kubeconfig-rules.ts';
import { callerKeyFaults, nameFaults, systemNamespaceFaults } from './name-rules.ts';
import { extraPortFaults, nodePortRangeFaults, readNodePortRange, servicePortFaults } from './port-rules.ts';
import { readServiceRanges, serviceRangeFaults } from './service-ranges.ts';
import type { SpecFault } from './spec-fault.ts';
import type { ShapedSpec, SpecDraft } from './spec-shape.ts';
import { intervalFaults, leaseFaults, masterCountFaults, maxEventsFaults } from './timing-rules.ts';

export type SpecResult = { readonly spec: ClusterSpec } | { readonly faults: readonly SpecFault[] };

/**
 * A cluster spec from what a YAML or JSON file said, with every default filled in; or all of its faults at once, never
 * a part of it. Any value may be given, none makes it throw.
 */
export function validateClusterSpec(value: unknown, options: SpecOptions = {}): SpecResult {
  const resolved = withAutoAddress(value, options);
  const { faults: shapeFaults, draft, shaped } = checkShape(resolved.value);
  const faults = [...shapeFaults, ...ruleFaults(draft, resolved.refusal)];
  const spec = shaped && faults.length === 0 ? completed(shaped) : undefined;
  return spec === undefined ? { faults } : { spec };
}

/** Each rule looks at what is there in the right shape, so that one fault hides no other. */
function ruleFaults(draft: SpecDraft, autoRefusal: string): SpecFault[] {
  const { serviceClusterIPRange: ranges, allocator } = draft;
  return [
    ...nameFaults(draft),
    ...kubeconfigFaults(draft),
    ...apiServerFaults(draft, autoRefusal),
    ...(ranges === undefined ? [] : serviceRangeFaults(ranges, allocator)),
    ...nodePortRangeFaults(draft),
    ...masterCountFaults(draft),
    ...leaseFaults(draft),
    ...servicePortFaults(draft),
    ...extraPortFaults(draft),
    ...systemNamespaceFaults(draft),
    ...intervalFaults(draft),
    ...maxEventsFaults(draft),
    ...callerKeyFaults(draft),
  ];
}

/** `undefined` only for what the rules refuse. */
function completed(shaped: ShapedSpec): ClusterSpec | undefined {
  const { kubeconfig, serviceClusterIPRange, serviceNodePortRange, apiServers, service, ...asIs } = shaped;
  const { primary, secondary } = readServiceRanges(serviceClusterIPRange);
  const nodePorts = readNodePortRange(serviceNodePortRange);
  if (primary === undefined || nodePorts instanceof AllocatorError) return undefined;
  return {
    ...asIs,
    kubeconfig: completedKubeconfig(kubeconfig),
    apiServers: apiServers.map(completedApiServer),
    serviceClusterIPRanges: secondary === undefined ? [primary.text] : [primary.text, secondary.text],
    serviceNodePortRange: portIntervalText(nodePorts),
    service: {
      ...service,
      extraPorts: service.extraPorts.map((port) => ({ ...port, targetPort: port.targetPort ?? port.port })),
    },
  };
}

function completedApiServer({ address, host, kind, probe }: ShapedSpec['apiServers'][number]): ApiServerSpec {
  const complete = { ...probe, path: probe.path ?? '/readyz' };
  return address === undefined
    ? { host: (host ?? '').toLowerCase(), kind: 'shared', probe: complete }
    : { address: canonicalAddress(address) ?? address, kind: kind ?? 'server', probe: complete };
}
