import type { AllocatorError } from '../allocator/errors.ts';
import type { Finding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { RepairError } from './errors.ts';
import { type Abort, aboutService, nameOf } from './service-finding.ts';

/* The words of `pkg/registry/core/service/portallocator/controller/repair.go`. */

const ALLOCATION = 'PortAllocation';

export function portNotAllocated(service: ServiceClaim, port: number): Finding {
  return aboutService(service, String(port), {
    type: 'repair',
    reason: 'PortNotAllocated',
    action: ALLOCATION,
    note: `Port ${port} is not allocated; repairing`,
    message: `the node port ${port} for service ${nameOf(service)} is not allocated; repairing`,
  });
}

export function duplicatePort(service: ServiceClaim, port: number): Finding {
  const why = 'was assigned to multiple services; please recreate';
  return aboutService(service, String(port), {
    type: 'duplicate',
    reason: 'PortAlreadyAllocated',
    action: ALLOCATION,
    note: `Port ${port} ${why} service`,
    message: `the node port ${port} for service ${nameOf(service)} ${why}`,
  });
}

export function portOutOfRange(service: ServiceClaim, port: number, range: string): Finding {
  const why = `is not within the port range ${range}; please recreate`;
  return aboutService(service, String(port), {
    type: 'outOfRange',
    reason: 'PortOutOfRange',
    action: ALLOCATION,
    note: `Port ${port} ${why} service`,
    message: `the port ${port} for service ${nameOf(service)} ${why}`,
  });
}

export function portRangeFull(service: ServiceClaim, port: number, range: string, cause: AllocatorError): Abort {
  const why = `${range} is full; you must widen the port range in order to create new services`;
  const error = new RepairError('Full', `the port range ${why}`, { cause });
  const finding = aboutService(service, String(port), {
    type: 'full',
    reason: 'PortRangeFull',
    action: ALLOCATION,
    note: `Port range ${why}`,
    message: error.message,
  });
  return { finding, error };
}

export function unknownPortError(service: ServiceClaim, port: number, cause: AllocatorError): Abort {
  const message = `unable to allocate port ${port} for service ${nameOf(service)} due to an unknown error, exiting: ${cause.message}`;
  const finding = aboutService(service, String(port), {
    type: 'unknown',
    reason: 'UnknownError',
    action: ALLOCATION,
    note: `Unable to allocate port ${port} due to an unknown error`,
    message,
  });
  return { finding, error: new RepairError('Unknown', message, { cause }) };
}
