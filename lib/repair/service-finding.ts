import type { Finding, FindingType, Regarding } from '../cluster/finding.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import type { RepairError } from './errors.ts';

/** What is said of one claim of a Service: `note` in its event, `message` in the log. */
export interface Wording {
  readonly type: FindingType;
  readonly reason: string;
  readonly action: string;
  readonly note: string;
  readonly message: string;
}

/** A finding after which the pass cannot go on, and the error that ends it. */
export interface Abort {
  readonly finding: Finding;
  readonly error: RepairError;
}

export function aboutService(service: ServiceClaim, item: string, wording: Wording): Finding {
  const { type, reason, action, note, message } = wording;
  return {
    type,
    message,
    item,
    service: nameOfService(service),
    event: { regarding: regardingService(service), reason, action, note },
  };
}

/** As the rest of the project writes it. */
export function nameOfService({ namespace, name }: ServiceClaim): string {
  return `${namespace}/${name}`;
}

/** As the repair loops of the original write it: the name first. */
export function nameOf(service: ServiceClaim): string {
  return `${service.name}/${service.namespace}`;
}

function regardingService({ namespace, name, uid, resourceVersion }: ServiceClaim): Regarding {
  return { apiVersion: 'v1', kind: 'Service', namespace, name, uid, resourceVersion };
}
