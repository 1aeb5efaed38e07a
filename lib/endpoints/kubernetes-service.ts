import { formatAddress, parseAddress } from '../allocator/ip-address.ts';
import { networkContains, parseCidr, usableOf } from '../allocator/network.ts';
import type { Finding } from '../cluster/finding.ts';
import {
  type EndpointPort,
  isNothing,
  KUBERNETES_SERVICE,
  publishedFamilies,
  type ServiceObject,
  type ServicePort,
  samePort,
} from '../cluster/published-objects.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';
import { defined } from '../util/values.ts';

export type ServiceWrite =
  | { readonly verb: 'create'; readonly object: ServiceObject }
  | {
      readonly verb: 'update';
      readonly object: ServiceObject;
      readonly fields: string;
      /** True if an API server that has only one Service range refuses the write. */
      readonly needsTwoRanges?: true;
    };

/**
 * Returns the write that the Service needs, if any. `service.reconcile` corrects type and ports. If the spec asks for both
 * families, but the Service has only one, the write sets `ipFamilyPolicy`. If that field is already dual-stack, the write also
 * sets `ipFamilies`.
 */
export function planService(spec: ClusterSpec, current: ServiceObject | undefined): ServiceWrite | undefined {
  const desired = desiredService(spec);
  if (current === undefined) return { verb: 'create', object: desired };
  const object = spec.service.reconcile ? correctedService(current, desired) : undefined;
  const { spec: fields, ...rest } = object ?? current;
  const families = publishedFamilies(spec).map(({ family }) => family);
  const isComplete = families.length === 1 || fields.type === 'ExternalName' || fields.clusterIP === 'None';
  const isSingle = (fields.ipFamilyPolicy ?? 'SingleStack') === 'SingleStack';
  const hasBoth = (fields.ipFamilies ?? fields.clusterIPs)?.length !== 1;
  if (isComplete || (!isSingle && (hasBoth || object !== undefined))) {
    return object && { verb: 'update', object, fields: 'type and ports' };
  }
  const dual = { ipFamilyPolicy: 'PreferDualStack', ...(!isSingle && { ipFamilies: families }) };
  const named = isSingle ? 'ipFamilyPolicy' : 'ipFamilies';
  return {
    verb: 'update',
    object: { ...rest, spec: { ...fields, ...dual } },
    fields: object === undefined ? named : `type, ports and ${named}`,
    ...(!isSingle && { needsTwoRanges: true }),
  };
}

export interface ServiceFault {
  readonly message: string;
  readonly remedy: string;
}

const PATCH = 'kubectl -n default patch service kubernetes --type=json -p';
const CLUSTER_WIDE = '[{"op":"replace","path":"/spec/internalTrafficPolicy","value":"Cluster"}]';
const RECREATE = 'Delete it, and a pass creates it again: kubectl -n default delete service kubernetes';

/** Returns the faults of the Service that no pass corrects and that prevent clients from reaching the API servers. */
export function serviceFaults(spec: ClusterSpec, { spec: fields }: ServiceObject): readonly ServiceFault[] {
  const wanted = serviceAddress(spec);
  const { type, clusterIP = '', selector, internalTrafficPolicy } = fields;
  const is = (what: string, remedy: string): ServiceFault[] => [
    { message: `Service default/kubernetes ${what}`, remedy },
  ];
  if (type === 'ExternalName') {
    return spec.service.reconcile ? [] : is('is of type ExternalName', 'Set service.reconcile: true in the spec');
  }
  const network = parseCidr(spec.serviceClusterIPRanges[0]);
  const address = parseAddress(clusterIP);
  // An address outside the range is no fault of the Service: usually the spec has another range than the API servers.
  const isForeign =
    network !== undefined &&
    address !== undefined &&
    networkContains(network, address) &&
    formatAddress(address) !== wanted;
  return [
    ...(isNothing(selector)
      ? []
      : is('has a selector', `Remove it: ${PATCH} '[{"op":"remove","path":"/spec/selector"}]'`)),
    // The endpoints have no node name, so no endpoint counts as local.
    ...(internalTrafficPolicy === 'Local'
      ? is('has internalTrafficPolicy: Local', `Correct it: ${PATCH} '${CLUSTER_WIDE}'`)
      : []),
    ...(clusterIP === 'None' ? is('is headless', RECREATE) : []),
    ...(isForeign ? is(`has ${formatAddress(address)} in place of ${wanted}`, RECREATE) : []),
  ];
}

export function serviceFindings(spec: ClusterSpec, service: ServiceObject | undefined): Finding[] {
  const faults = service === undefined ? [] : serviceFaults(spec, service);
  return faults.map(({ message, remedy }) => ({ type: 'serviceDiffers', message: `${message}. ${remedy}` }));
}

/** Returns the Service as upstream creates it (`pkg/controlplane/controller/kubernetesservice/controller.go`). */
function desiredService(spec: ClusterSpec): ServiceObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { ...KUBERNETES_SERVICE, labels: { provider: 'kubernetes', component: 'apiserver' } },
    spec: {
      ports: servicePorts(spec),
      clusterIP: serviceAddress(spec),
      ipFamilyPolicy: spec.service.ipFamilyPolicy ?? 'SingleStack',
      sessionAffinity: 'None',
      type: spec.service.nodePort > 0 ? 'NodePort' : 'ClusterIP',
    },
  };
}

/**
 * Returns the Service with its type and ports corrected; `undefined` if both are correct. Ports are compared by position. A
 * Service of type ExternalName also gets its address, because otherwise the API server would allocate an arbitrary one.
 */
function correctedService(current: ServiceObject, desired: ServiceObject): ServiceObject | undefined {
  const { type, clusterIP = '', ports = [] } = desired.spec;
  const currentPorts = current.spec.ports ?? [];
  const satisfied =
    current.spec.type === type &&
    !current.spec.externalName &&
    currentPorts.length === ports.length &&
    ports.every((port, position) => sameServicePort(port, currentPorts[position]));
  if (satisfied) return undefined;
  const { externalName: _, ...kept } = current.spec;
  const address = current.spec.type === 'ExternalName' ? { clusterIP, clusterIPs: [clusterIP] } : {};
  return { ...current, spec: { ...kept, ...address, ports, ...defined({ type }) } };
}

export function endpointPorts(spec: ClusterSpec): readonly EndpointPort[] {
  return [httpsPort(spec), ...spec.endpoints.extraPorts];
}

export function httpsPort({ service }: ClusterSpec): EndpointPort {
  return { name: 'https', port: service.securePort, protocol: 'TCP' };
}

function servicePorts({ service }: ClusterSpec): ServicePort[] {
  const https = { name: 'https', protocol: 'TCP', port: service.port, targetPort: service.securePort };
  return [service.nodePort > 0 ? { ...https, nodePort: service.nodePort } : https, ...service.extraPorts];
}

/** Returns the address of the Service: the first usable address of the primary range. */
export function serviceAddress({ serviceClusterIPRanges: [primary] }: ClusterSpec): string {
  const network = parseCidr(primary);
  if (network === undefined) throw new TypeError(`"${primary}" is not a CIDR: the cluster spec was not validated`);
  return formatAddress({ family: network.family, value: usableOf(network).first });
}

function sameServicePort(wanted: ServicePort, found: ServicePort | undefined): boolean {
  return (
    found !== undefined &&
    samePort(found, wanted) &&
    found.targetPort === wanted.targetPort &&
    (found.nodePort ?? 0) === (wanted.nodePort ?? 0)
  );
}
