import { type Kind, RESOURCES } from '../../lib/kubernetes/cluster-port.ts';
import { defined } from '../../lib/util/values.ts';

/** A kind that the stand-in serves. The stand-in serves exactly the kinds of the interface `ClusterPort`. */
export interface ServedResource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** The short name that kubectl accepts instead of the plural. */
  readonly shortName?: string;
}

function resourceOf(kind: Kind, shortName?: string): ServedResource {
  return { kind, ...RESOURCES[kind], ...defined({ shortName }) };
}

export const NAMESPACES = resourceOf('Namespace', 'ns');
export const SERVICES = resourceOf('Service', 'svc');
export const ENDPOINTS = resourceOf('Endpoints', 'ep');
export const IP_ADDRESSES = resourceOf('IPAddress', 'ip');
export const SERVICE_CIDRS = resourceOf('ServiceCIDR');

export const SERVED_RESOURCES: readonly ServedResource[] = [
  NAMESPACES,
  SERVICES,
  ENDPOINTS,
  resourceOf('Event', 'ev'),
  IP_ADDRESSES,
  resourceOf('EndpointSlice'),
  SERVICE_CIDRS,
];

export interface Target {
  readonly resource: ServedResource;
  readonly namespace?: string;
  readonly name?: string;
}

/** Matches an API version, a namespace, the plural of a kind, and a name. */
const PATH = /^\/apis?\/(v1|[^/]+\/v1)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?\/?$/;

/** Returns the target of a request path; `undefined` for a path that is not served. */
export function requestedTarget(path: string): Target | undefined {
  const parts: readonly (string | undefined)[] = PATH.exec(path) ?? [];
  const [, apiVersion, namespace, plural, name] = parts.map((part) => part && decodeURIComponent(part));
  const resource = SERVED_RESOURCES.find((each) => each.apiVersion === apiVersion && each.plural === plural);
  if (resource === undefined) return undefined;
  const inNamespace = namespace !== undefined;
  if (inNamespace !== resource.namespaced && (inNamespace || name !== undefined)) return undefined;
  return { resource, ...defined({ namespace, name }) };
}

/** A refusal of the stand-in, with the Kubernetes `Status` that it sends. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status;

  constructor(code: number, reason: string, message: string, details: object = {}) {
    super(message);
    this.status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code };
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

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(resource: ServedResource, name: string, cause = MODIFIED): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedName(resource)} "${name}": ${cause}`;
  return new StatusError(409, 'Conflict', message, details(resource, name));
}

/** @param fault `<field>: <kind of error>: <description>`. kubectl prints only the causes of this status. */
export function invalid(resource: ServedResource, name: string, fault: string): StatusError {
  const { kind } = resource;
  const message = `${kind}${groupOf(resource) && `.${groupOf(resource)}`} "${name}" is invalid: ${fault}`;
  const [, field, cause, error = ''] = /^([^:]*): (([^:]*).*)$/s.exec(fault) ?? [];
  const causes = [{ reason: `FieldValue${error.replace(' value', '')}`, message: cause, field }];
  return new StatusError(422, 'Invalid', message, { ...details(resource, name), kind, causes });
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}
