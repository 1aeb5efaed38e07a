import { isDeepStrictEqual } from 'node:util';
import type { Refusal } from '../allocator/refusal.ts';
import { defined } from '../util/values.ts';
import type { Plan, PortPlace, WantedAddress, WantedPort } from './plan.ts';
import type { Service, ServiceSpec } from './service.ts';

/** One operation of a JSON Patch (RFC 6902). `add` replaces an existing value. */
export interface PatchOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: string | number | readonly string[];
}

export interface AllocatedItems {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

/** Returns the patch that sets the allocated items. A requested address keeps the notation of the client. */
export function patchOf(
  plan: Plan,
  { addresses, ports }: AllocatedItems,
  sent: ServiceSpec,
): readonly PatchOperation[] {
  return [...addressOperations(plan, addresses, sent), ...portOperations(plan, ports, sent)];
}

function addressOperations(plan: Plan, allocated: readonly string[], sent: ServiceSpec): PatchOperation[] {
  if (plan.addresses.length === 0) return [];
  const clusterIPs = [...plan.clusterIPs];
  for (const [place, { index, value }] of plan.addresses.entries())
    clusterIPs[index] = value || (allocated[place] ?? '');
  if (isDeepStrictEqual(sent.clusterIPs, clusterIPs) && sent.clusterIP === clusterIPs[0]) return [];
  return [
    { op: 'add', path: '/spec/clusterIP', value: clusterIPs[0] ?? '' },
    { op: 'add', path: '/spec/clusterIPs', value: clusterIPs },
  ];
}

function portOperations(plan: Plan, allocated: readonly number[], sent: ServiceSpec): PatchOperation[] {
  return plan.ports.flatMap(({ at }, place): PatchOperation[] => {
    const value = allocated[place] ?? 0;
    const isSent = (port: PortPlace) =>
      (port === 'healthCheck' ? sent.healthCheckNodePort : sent.ports[port]?.nodePort) === value;
    const pathOf = (port: PortPlace) =>
      port === 'healthCheck' ? '/spec/healthCheckNodePort' : `/spec/ports/${port}/nodePort`;
    return at.filter((port) => !isSent(port)).map((port) => ({ op: 'add', path: pathOf(port), value }));
  });
}

export function namePatch({ metadata }: Service, name: string): readonly PatchOperation[] {
  return metadata.name === name ? [] : [{ op: 'add', path: '/metadata/name', value: name }];
}

/** A `Status` of `meta/v1`. The API server passes it on to its client. */
export interface RefusalStatus {
  readonly status: 'Failure';
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details?: {
    readonly name?: string;
    readonly kind?: 'Service';
    readonly causes: readonly { readonly reason?: string; readonly message: string; readonly field?: string }[];
  };
}

/* The refusals of the registry (`pkg/registry/core/service/storage/alloc.go`; `apimachinery/pkg/api/errors`). */

export function addressRefusal(name: string, plan: Plan, wanted: WantedAddress, error: Refusal): RefusalStatus {
  if (wanted.value === '' && error.code === 'Full') {
    return internalError(`failed to allocate a serviceIP for Service ${JSON.stringify(name)}: ${error.message}`);
  }
  const what = `failed to allocate IP ${wanted.value}`.trimEnd();
  return invalid(name, 'spec.clusterIPs', JSON.stringify(plan.clusterIPs), `${what}: ${error.message}`);
}

export function portRefusal(name: string, { value, at }: WantedPort, error: Refusal): RefusalStatus {
  const [first = 0] = at;
  if (first === 'healthCheck') {
    const what = value === 0 ? 'a HealthCheck NodePort 0' : `requested HealthCheck NodePort ${value}`;
    return internalError(`failed to allocate ${what}: ${error.message}`);
  }
  if (value === 0) return internalError(`failed to allocate a nodePort: ${error.message}`);
  return invalid(name, `spec.ports[${first}].nodePort`, String(value), error.message);
}

export function tooManyPortsRefusal(name: string, count: number, most: number): RefusalStatus {
  return invalidField(name, 'spec.ports', 'FieldValueTooMany', `Too many: ${count}: must have at most ${most} items`);
}

export function failure(
  code: number,
  reason: string,
  message: string,
  details?: RefusalStatus['details'],
): RefusalStatus {
  return { status: 'Failure', code, reason, message, ...defined({ details }) };
}

function invalid(name: string, field: string, value: string, detail: string): RefusalStatus {
  return invalidField(name, field, 'FieldValueInvalid', `Invalid value: ${value}: ${detail}`);
}

function invalidField(name: string, field: string, reason: string, body: string): RefusalStatus {
  const message = `Service ${JSON.stringify(name)} is invalid: ${field}: ${body}`;
  return failure(422, 'Invalid', message, { name, kind: 'Service', causes: [{ reason, message: body, field }] });
}

function internalError(message: string): RefusalStatus {
  return failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] });
}
