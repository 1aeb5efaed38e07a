import type { Resource } from './resources.ts';

/** A refusal, as a Kubernetes `Status`. Thrown by the stand-in's storage and turned into a reply at its edge. */
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

/** `services`, `endpointslices.discovery.k8s.io`: how messages name a resource. */
function qualifiedName(resource: Resource): string {
  const group = groupOf(resource);
  return group === '' ? resource.plural : `${resource.plural}.${group}`;
}

function groupOf(resource: Resource): string {
  return resource.apiVersion.includes('/') ? (resource.apiVersion.split('/')[0] ?? '') : '';
}

const details = (resource: Resource, name: string) => ({ name, group: groupOf(resource), kind: resource.plural });

export function notFound(resource: Resource, name: string): StatusError {
  return new StatusError(404, 'NotFound', `${qualifiedName(resource)} "${name}" not found`, details(resource, name));
}

export function alreadyExists(resource: Resource, name: string): StatusError {
  const message = `${qualifiedName(resource)} "${name}" already exists`;
  return new StatusError(409, 'AlreadyExists', message, details(resource, name));
}

export function conflict(resource: Resource, name: string, cause: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedName(resource)} "${name}": ${cause}`;
  return new StatusError(409, 'Conflict', message, details(resource, name));
}

export function invalid(resource: Resource, name: string, fault: string): StatusError {
  const message = `${resource.kind}${groupOf(resource) && `.${groupOf(resource)}`} "${name}" is invalid: ${fault}`;
  return new StatusError(422, 'Invalid', message, details(resource, name));
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function terminating(resource: Resource, name: string, namespace: string): StatusError {
  const cause = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const message = `${qualifiedName(resource)} "${name}" is forbidden: ${cause}`;
  return new StatusError(403, 'Forbidden', message, {
    ...details(resource, name),
    causes: [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ],
  });
}
