import { boundedText, isRecord } from '../util/values.ts';
import { apiCalls, type CallOptions } from './api-calls.ts';
import { type Kind, RESOURCES } from './cluster-port.ts';
import { isAbsent, jsonOf, malformed, refusedCall } from './replies.ts';
import { recordAt, statusOf, textAt } from './status.ts';

export interface Permission {
  readonly verb: string;
  /** The API group. `''` is the core group. */
  readonly group: string;
  readonly resource: string;
  /** The namespace. Absent if the permission covers all namespaces, or if the kind is cluster-scoped. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

const LONGEST_NAME = 253;
export const WEBHOOK = 'zz-kube-bootstrap-controller';

export type SelfReview = ReturnType<typeof selfReview>;

/** Returns functions that ask an API server about itself and the caller. Each throws a `ClusterError` if its call fails. */
export function selfReview(options: CallOptions) {
  const send = apiCalls(options);
  const ask = async (purpose: string, path: string, body?: object) => {
    const reply = await send(purpose, { method: body === undefined ? 'GET' : 'POST', path }, body);
    const answer = () => {
      if (reply.status !== 201 && reply.status !== 200) throw refusedCall(reply);
      const read = jsonOf(reply);
      return isRecord(read) ? read : {};
    };
    return { reply, answer };
  };
  return {
    version: async () => {
      const { reply, answer } = await ask('get its version', '/version');
      const version = textAt(answer(), 'gitVersion');
      if (version === '') throw malformed(reply, 'no version');
      return version;
    },
    /** Returns the name of the caller; `undefined` if the API server serves no SelfSubjectReview (Kubernetes 1.27 and earlier). */
    user: async () => {
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const path = `/apis/${review.apiVersion}/selfsubjectreviews`;
      const { reply, answer } = await ask('review who this user is', path, review);
      // The API server refuses the review of an unauthenticated user, whose name is in the message.
      if (reply.status === 403) return /: User "([^"]{1,253})" cannot /.exec(statusOf(reply).message)?.[1];
      if (reply.status === 404) return undefined;
      const info = recordAt(recordAt(answer(), 'status'), 'userInfo');
      return boundedText(textAt(info, 'username'), LONGEST_NAME) || undefined;
    },
    /** Returns whether the webhook of deploy/admission-webhook.yaml exists; `undefined` if the reply does not show this. */
    hasWebhook: async () => {
      const path = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK}`;
      const { reply } = await ask(`get MutatingWebhookConfiguration ${WEBHOOK}`, path);
      if (reply.status === 200) return true;
      return isAbsent(reply) ? false : undefined;
    },
    allows: async (permission: Permission) => {
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' };
      const purpose = `review whether this user may ${permissionText(permission)}`;
      const path = `/apis/${review.apiVersion}/selfsubjectaccessreviews`;
      const body = { ...review, spec: { resourceAttributes: permission } };
      const { reply, answer } = await ask(purpose, path, body);
      const { allowed } = recordAt(answer(), 'status');
      if (typeof allowed !== 'boolean') throw malformed(reply, 'no review');
      return allowed;
    },
  };
}

/** Returns a text such as `update endpoints kubernetes in default`. */
export function permissionText({ verb, group, resource, namespace, name }: Permission): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `${verb} ${kind}${name === undefined ? '' : ` ${name}`}${namespace === undefined ? '' : ` in ${namespace}`}`;
}

export function resourceOf(kind: Kind): Pick<Permission, 'group' | 'resource'> {
  const { apiVersion, plural } = RESOURCES[kind];
  return { group: apiVersion.split('/').at(-2) ?? '', resource: plural };
}

export type PermissionGroup = ReturnType<typeof permissionGroup>;

/**
 * Returns a group of permissions, as `deploy/rbac.yaml` grants them. RBAC cannot limit `list` and `create` to one object.
 * @param rights verbs, followed by an object's name if limited to this object, such as `get kubernetes`
 */
export function permissionGroup(about: string, kind: Kind, rights: readonly string[], namespace?: string) {
  const place = { ...resourceOf(kind), namespace };
  const permissions = rights.map((right) => {
    const [verb = '', name] = right.split(' ');
    return { verb, ...place, name };
  });
  return { about, place, permissions };
}

const ON_SLICE = ['create', 'list', 'delete kubernetes', 'get kubernetes', 'update kubernetes'];

export const PERMISSION_GROUPS: readonly PermissionGroup[] = [
  permissionGroup('the kubernetes Service', 'Service', ['create', 'get kubernetes', 'update kubernetes'], 'default'),
  permissionGroup('its endpoints', 'Endpoints', ['create', 'get kubernetes', 'update kubernetes'], 'default'),
  permissionGroup('its endpoint slices', 'EndpointSlice', ON_SLICE, 'default'),
  permissionGroup('repair', 'Service', ['get', 'list']),
  permissionGroup('system namespaces', 'Namespace', ['create', 'get']),
  permissionGroup('events', 'Event', ['create', 'patch']),
  permissionGroup('ServiceCIDRs', 'ServiceCIDR', ['create', 'list', 'get kubernetes']),
  permissionGroup('IPAddresses', 'IPAddress', ['get', 'list']),
];
