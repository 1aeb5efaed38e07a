import { type Kind, RESOURCES } from '../../lib/kubernetes/cluster-port.ts';
import { defined } from '../../lib/util/values.ts';

/** A kind that the stand-in serves. It stores objects of exactly the kinds of the interface `ClusterPort`. */
export interface ServedResource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** The short name that kubectl accepts instead of the plural. */
  readonly shortName?: string;
}

function resourceOf(kind: Kind, shortName: string): ServedResource {
  return { kind, shortName, ...RESOURCES[kind] };
}

export const NAMESPACES = resourceOf('Namespace', 'ns');
export const SERVICES = resourceOf('Service', 'svc');
export const ENDPOINTS = resourceOf('Endpoints', 'ep');
export const IP_ADDRESSES = resourceOf('IPAddress', 'ip');
export const SERVICE_CIDRS: ServedResource = { kind: 'ServiceCIDR', ...RESOURCES.ServiceCIDR };

export const SERVED_RESOURCES: readonly ServedResource[] = [
  NAMESPACES,
  SERVICES,
  ENDPOINTS,
  resourceOf('Event', 'ev'),
  IP_ADDRESSES,
  { kind: 'EndpointSlice', ...RESOURCES.EndpointSlice },
  SERVICE_CIDRS,
];

export interface Target {
  readonly resource: ServedResource;
  readonly namespace?: string;
  readonly name?: string;
}

/** Returns the target of a request path; `undefined` for a path that is not served. */
export function requestedTarget(path: string): Target | undefined {
  const segments = path.split('/').filter(Boolean).map(decodeURIComponent);
  const apiVersion = segments[0] === 'api' ? segments[1] : `${segments[1]}/${segments[2]}`;
  const rest = segments.slice(segments[0] === 'api' ? 2 : 3);
  const inNamespace = rest[0] === 'namespaces' && rest.length > 2;
  const [plural, name, subresource] = inNamespace ? rest.slice(2) : rest;
  const resource = SERVED_RESOURCES.find(
    (candidate) => candidate.apiVersion === apiVersion && candidate.plural === plural,
  );
  if (resource === undefined || subresource !== undefined) return undefined;
  if (inNamespace !== resource.namespaced && (inNamespace || name !== undefined)) return undefined;
  return {
    resource,
    ...(inNamespace && rest[1] !== undefined && { namespace: rest[1] }),
    ...defined({ name }),
  };
}

/** A refusal of the stand-in, which sends it as a Kubernetes `Status`. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly httpStatus: number;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(httpStatus: number, reason: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.httpStatus = httpStatus;
    this.reason = reason;
    this.details = details;
  }

  toStatus(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      details: this.details,
      code: this.httpStatus,
    };
  }
}

/** Returns the name of a resource in messages: `services`, `endpointslices.discovery.k8s.io`. */
function qualifiedName(resource: ServedResource): string {
  const group = groupOf(resource);
  return group === '' ? resource.plural : `${resource.plural}.${group}`;
}

export function groupOf({ apiVersion }: Pick<ServedResource, 'apiVersion'>): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '';
}

const details = (resource: ServedResource, name: string) => ({ name, group: groupOf(resource), kind: resource.plural });

export function notFound(resource: ServedResource, name: string): StatusError {
  return new StatusError(404, 'NotFound', `${qualifiedName(resource)} "${name}" not found`, details(resource, name));
}

export function alreadyExists(resource: ServedResource, name: string): StatusError {
  const message = `${qualifiedName(resource)} "${name}" already exists`;
  return new StatusError(409, 'AlreadyExists', message, details(resource, name));
}

export function conflict(resource: ServedResource, name: string, cause: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedName(resource)} "${name}": ${cause}`;
  return new StatusError(409, 'Conflict', message, details(resource, name));
}

/** @param fault `<field>: <kind of error>: <description>`. kubectl prints only the causes of this status. */
export function invalid(resource: ServedResource, name: string, fault: string): StatusError {
  const message = `${resource.kind}${groupOf(resource) && `.${groupOf(resource)}`} "${name}" is invalid: ${fault}`;
  const [, field = '', cause = '', kind = ''] = /^([^:]*): (([^:]*).*)$/s.exec(fault) ?? [];
  const reason = `FieldValue${kind.replace(' value', '')}`;
  const causes = [{ reason, message: cause, field }];
  return new StatusError(422, 'Invalid', message, { ...details(resource, name), kind: resource.kind, causes });
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}
