import { formatAddress } from '../allocator/ip-address.ts';
import { parseCidr, usableOf } from '../allocator/network.ts';
import {
  type EndpointPort,
  KUBERNETES_SERVICE,
  type ServiceObject,
  type ServicePort,
  samePort,
} from '../cluster/published-objects.ts';
import type { ClusterSpec } from '../spec/cluster-spec.ts';

export type ServiceWrite =
  | { readonly verb: 'create'; readonly object: ServiceObject }
  | { readonly verb: 'update'; readonly object: ServiceObject; readonly fields: string };

/**
 * Returns the write of the Service, if it needs one. A missing Service is created. The type and ports are corrected if the
 * spec sets `service.reconcile`. The `ipFamilyPolicy` is changed if the spec asks for both families and the Service has one.
 */
export function planService(spec: ClusterSpec, current: ServiceObject | undefined): ServiceWrite | undefined {
  const desired = desiredService(spec);
  if (current === undefined) return { verb: 'create', object: desired };
  const object = spec.service.reconcile ? correctedService(current, desired) : undefined;
  const isSingle = (current.spec.ipFamilyPolicy ?? 'SingleStack') === 'SingleStack';
  if (spec.service.ipFamilyPolicy !== 'PreferDualStack' || !isSingle) {
    return object && { verb: 'update', object, fields: 'type and ports' };
  }
  const { spec: fields, ...rest } = object ?? current;
  const dual = { ...rest, spec: { ...fields, ipFamilyPolicy: 'PreferDualStack' } };
  return {
    verb: 'update',
    object: dual,
    fields: object === undefined ? 'ipFamilyPolicy' : 'type, ports and ipFamilyPolicy',
  };
}

/**
 * Returns the Service `default/kubernetes` as upstream creates it (`CreateOrUpdateMasterServiceIfNeeded` of
 * `pkg/controlplane/controller/kubernetesservice/controller.go`). It has no selector and the first address of the primary range.
 * It has one family unless the spec asks for both.
 */
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

/** Returns the Service with its type and ports corrected; `undefined` if both are correct. Ports are compared by position. */
function correctedService(current: ServiceObject, desired: ServiceObject): ServiceObject | undefined {
  const ports = desired.spec.ports ?? [];
  const currentPorts = current.spec.ports ?? [];
  const satisfied =
    current.spec.type === desired.spec.type &&
    currentPorts.length === ports.length &&
    ports.every((port, position) => sameServicePort(port, currentPorts[position]));
  if (satisfied) return undefined;
  return {
    ...current,
    spec: { ...current.spec, ports, ...(desired.spec.type === undefined ? {} : { type: desired.spec.type }) },
  };
}

/** Returns the ports that the Endpoints and the EndpointSlice publish. */
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

function serviceAddress({ serviceClusterIPRanges: [primary] }: ClusterSpec): string {
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
