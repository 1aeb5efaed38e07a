import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { EndpointSliceObject, EndpointsObject } from '../../lib/cluster/published-objects.ts';
import type { HttpRequest } from '../../lib/kubernetes/http-client.ts';
import { StatusError } from '../../local/stand-in/resources.ts';
import { ObjectServer, type ServerReply } from '../support/object-server.ts';

export interface StoredService extends KubernetesObject {
  readonly spec: ServiceSpec;
}

export interface ServiceSpec {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  readonly externalTrafficPolicy?: 'Local';
  readonly healthCheckNodePort?: number;
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly ipFamilies?: readonly string[];
  readonly ipFamilyPolicy?: string;
  readonly ports: readonly ServicePort[];
}

interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: 'TCP';
  readonly nodePort?: number;
}

/** The annotations of Services that are in lists, and that an authorization webhook does not let a pass read alone. */
export const DENIED = { access: 'denied' };

/**
 * The objects of one cluster, and the answers of all its API servers. Without a ServiceCIDR, their Kubernetes version is older
 * than 1.33.
 */
export class ControlPlane extends ObjectServer {
  /** The IPAddresses that an admission policy refuses, with the status. */
  readonly refused = new Map<string, number>();

  services(): StoredService[] {
    return this.all('services') as KubernetesObject[] as StoredService[];
  }

  slices(): EndpointSliceObject[] {
    return this.all('endpointslices') as KubernetesObject[] as EndpointSliceObject[];
  }

  override answer(request: HttpRequest, by: string): ServerReply {
    if (request.path.includes('/servicecidrs') && this.all('servicecidrs').length === 0) {
      return statusReply(404, '', 'the server could not find the requested resource');
    }
    if (request.method === 'POST' && /\/ipaddresses(\?|$)/.test(request.path)) {
      const status = this.refused.get(JSON.parse(request.body ?? '{}').metadata.name);
      if (status === 403) return statusReply(403, 'Forbidden', 'ValidatingAdmissionPolicy denied request');
      if (status === 422) return statusReply(422, 'Invalid', 'the IPAddress is invalid');
    }
    if (request.path.endsWith('/selfsubjectaccessreviews')) {
      return { status: 201, body: { ...JSON.parse(request.body ?? '{}'), status: { allowed: true } } };
    }
    // The events of a run are not stored, because they would slow down its lists.
    const isEvent = request.method === 'POST' && request.path.includes('/events');
    if (isEvent) return { status: 201, body: JSON.parse(request.body ?? '{}') };
    const reply = super.answer(request, by);
    return isDenied(request, reply) ? statusReply(403, 'Forbidden', 'a webhook denied request') : reply;
  }
}

function isDenied({ method }: HttpRequest, { body }: ServerReply): boolean {
  return method === 'GET' && (body as KubernetesObject).metadata?.annotations === DENIED;
}

export function statusReply(status: number, reason: string, message: string): ServerReply {
  return { status, body: new StatusError(status, reason, message).status };
}

export function endpointAddresses({ subsets }: Partial<EndpointsObject> = {}): string[] {
  return (subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)).sort();
}

export function sliceAddresses({ endpoints }: Partial<EndpointSliceObject> = {}): string[] {
  return (endpoints ?? []).flatMap(({ addresses }) => addresses).sort();
}

export function isIPv6(address: string): boolean {
  return address.includes(':');
}

export function itemsOf({ spec }: { readonly spec: ServiceSpec }): string[] {
  const ports = [...spec.ports.map(({ nodePort = 0 }) => nodePort), spec.healthCheckNodePort ?? 0];
  return [...(spec.clusterIPs ?? []), ...ports.flatMap((port) => (port === 0 ? [] : String(port)))];
}
