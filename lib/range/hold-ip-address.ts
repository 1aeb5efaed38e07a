import { familyOf } from '../allocator/ip-address.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  HOLD_OWNER_LABEL,
  type KubernetesObject,
} from '../cluster/kubernetes-objects.ts';
import { defined, isoTime } from '../util/values.ts';
import type { Hold, HoldTerms } from './hold.ts';

/*
 * If API servers allocate, an IPAddress that references no Service holds an address (Kubernetes 1.33 and later). API servers
 * then do not allocate the address to a Service, and their repair ignores IPAddresses that they do not manage.
 */

export const MANAGED_BY_HOLDS = 'kube-bootstrap-controller';
export const HOLDS_SELECTOR = `${ADDRESS_MANAGED_BY_LABEL}=${MANAGED_BY_HOLDS}`;

/** The label with the id of the request. An id has the syntax of a label value. */
export const REQUEST_LABEL = 'kube-bootstrap-controller/hold-request';
/** The annotation with the end of a hold. A hold without it has no end. */
const UNTIL_ANNOTATION = 'kube-bootstrap-controller/hold-until';

/** Returns the IPAddress that holds the canonical address `name`. The API server refuses a second IPAddress with this name. */
export function ipAddressOfHold(name: string, { owner, untilMs, requestId }: HoldTerms): KubernetesObject {
  const labels = {
    [FAMILY_LABEL]: familyOf(name) ?? '',
    [ADDRESS_MANAGED_BY_LABEL]: MANAGED_BY_HOLDS,
    [HOLD_OWNER_LABEL]: owner,
    ...defined({ [REQUEST_LABEL]: requestId }),
  };
  const annotations = untilMs === undefined ? {} : { [UNTIL_ANNOTATION]: isoTime(untilMs) };
  const spec = { parentRef: { group: MANAGED_BY_HOLDS, resource: 'holds', name: owner } };
  const metadata = { name, labels, annotations };
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata, spec };
  return object;
}

/** Returns the hold of an IPAddress; `undefined` without a hold. A hold whose end cannot be read has no end. */
export function holdIn({ metadata: { name, labels = {}, annotations = {} } }: KubernetesObject): Hold | undefined {
  if (labels[ADDRESS_MANAGED_BY_LABEL] !== MANAGED_BY_HOLDS) return undefined;
  // oxlint-disable-next-line no-restricted-globals -- parses a given time, and reads no clock.
  const untilMs = Date.parse(annotations[UNTIL_ANNOTATION] ?? '');
  const requestId = labels[REQUEST_LABEL];
  return {
    owner: labels[HOLD_OWNER_LABEL] ?? '',
    takenUpBy: 'any',
    ...(Number.isFinite(untilMs) && { untilMs }),
    ...defined({ requestId }),
    items: [name],
  };
}
