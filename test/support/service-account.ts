import type { KubeApiserver } from './control-plane.ts';
import { eventually } from './eventually.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';

const NAMESPACE = 'accounts';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

/** A rule of a ClusterRole. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** Creates a service account without rights in a namespace of its own. */
export async function serviceAccount(apiserver: KubeApiserver, name: string) {
  const inNamespace = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
  await apiserver.request('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
  await apiserver.send('POST', inNamespace, { metadata: { name } });
  const token = `${inNamespace}/${name}/token`;
  const { status } = await apiserver.send<{ status: { token: string } }>('POST', token, { spec: {} });
  return {
    /** A kubeconfig with a token of the service account. */
    kubeconfigYaml: kubeconfigTo(apiserver.url, { ca: apiserver.ca, user: { token: status.token } }),
    grant: (rules: readonly Rule[]) => grant(apiserver, { namespace: NAMESPACE, name }, rules),
  };
}

/** Grants a service account its own ClusterRole and waits until the API server applies it. */
export async function grant(
  apiserver: KubeApiserver,
  account: { readonly namespace: string; readonly name: string },
  rules: readonly Rule[],
): Promise<void> {
  const metadata = { name: `granted-to-${account.name}` };
  await apiserver.send('POST', `${RBAC}/clusterroles`, { metadata, rules });
  await apiserver.send('POST', `${RBAC}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', ...metadata },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  });
  const attributes = rules.flatMap(({ apiGroups: [group], resources: [resource], verbs }) =>
    verbs.map((verb) => ({ group, resource, verb })),
  );
  await untilAllowed(apiserver, `system:serviceaccount:${account.namespace}:${account.name}`, attributes);
}

/**
 * Waits until the API server allows the user every one of these requests. The authorizer applies new roles and bindings a moment
 * later, one by one.
 */
export async function untilAllowed(
  apiserver: KubeApiserver,
  user: string,
  attributes: readonly object[],
): Promise<void> {
  await eventually(async () => {
    for (const resourceAttributes of attributes) {
      const review = { spec: { user, resourceAttributes } };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const { status } = await apiserver.send<{ status: { allowed: boolean } }>('POST', path, review);
      if (!status.allowed) throw new Error(`${user} may not yet ${JSON.stringify(resourceAttributes)}`);
    }
  });
}
