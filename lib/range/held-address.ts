import { familyOf } from '../allocator/ip-address.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  HOLD_OWNER_LABEL,
  type KubernetesObject,
} from '../cluster/kubernetes-objects.ts';
import { isoTime } from '../cluster/values.ts';
import type { Hold, HoldTerms } from './hold.ts';

/*
 * Where API servers allocate, an address is held by an IPAddress of Kubernetes 1.33 and later that references no
 * Service: API servers refuse the address to Services, and their repair ignores what they do not manage.
 */

export const MANAGED_BY_HOLDS = 'kube-bootstrap-controller';
export const HOLDS_SELECTOR = `${ADDRESS_MANAGED_BY_LABEL}=${MANAGED_BY_HOLDS}`;

/** Its value is the id of the request, which has the syntax of a label. */
export const REQUEST_LABEL = 'kube-bootstrap-controller/hold-request';
/** A time; absent: the hold has no end. */
const UNTIL_ANNOTATION = 'kube-bootstrap-controller/hold-until';

/** Returns the IPAddress that holds a canonical address. The API server refuses to create it if the address has one already. */
export function heldAddress(name: string, { owner, untilMs, requestId }: HoldTerms): KubernetesObject {
  const labels = {
    [FAMILY_LABEL]: familyOf(name) ?? '',
    [ADDRESS_MANAGED_BY_LABEL]: MANAGED_BY_HOLDS,
    [HOLD_OWNER_LABEL]: owner,
    ...(requestId !== undefined && { [REQUEST_LABEL]: requestId }),
  };
  const annotations = untilMs === undefined ? {} : { [UNTIL_ANNOTATION]: isoTime(untilMs) };
  const spec = { parentRef: { group: MANAGED_BY_HOLDS, resource: 'holds', name: owner } };
  const metadata = { name, labels, annotations };
  return { apiVersion: 'networking.k8s.io/v1', kind: 'IPAddress', metadata, ...{ spec } };
}

/** Returns the hold of an IPAddress; `undefined` for one that holds nothing. A hold with an unreadable end has none. */
export function holdIn({ metadata: { name, labels = {}, annotations = {} } }: KubernetesObject): Hold | undefined {
  if (labels[ADDRESS_MANAGED_BY_LABEL] !== MANAGED_BY_HOLDS) return undefined;
  const untilMs = Date.parse(annotations[UNTIL_ANNOTATION] ?? '');
  const requestId = labels[REQUEST_LABEL];
  return {
    owner: labels[HOLD_OWNER_LABEL] ?? '',
    takenUpBy: 'any',
    ...(Number.isFinite(untilMs) && { untilMs }),
    ...(requestId !== undefined && { requestId }),
    items: [name],
  };
}
