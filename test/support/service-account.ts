import { type KubeApiserver, kubeconfig } from './control-plane.ts';
import { eventually } from './eventually.ts';

const NAMESPACE = 'accounts';

/** As in a ClusterRole. */
export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** A service account that may do nothing yet. */
export interface ServiceAccount {
  /** A kubeconfig with a token of it. */
  readonly kubeconfigYaml: string;
  /** Grants it a ClusterRole of its own, and waits until the API server heeds it. */
  grant(rules: readonly Rule[]): Promise<void>;
}

/** Makes a service account in a namespace of its own, and a token of it. */
export async function serviceAccount(apiserver: KubeApiserver, name: string): Promise<ServiceAccount> {
  const inNamespace = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  await apiserver.request('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } });
  await create(apiserver, inNamespace, { metadata: { name } });
  const { status } = await create<{ status: { token: string } }>(apiserver, `${inNamespace}/${name}/token`, {
    spec: {},
  });
  return {
    kubeconfigYaml: kubeconfig({ url: apiserver.url, ca: apiserver.ca, token: status.token }),
    async grant(rules) {
      await create(apiserver, `${rbac}/clusterroles`, { metadata: { name }, rules });
      await create(apiserver, `${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, name }],
      });
      const attributes = rules.map(({ apiGroups: [group], resources: [resource], verbs: [verb] }) => ({
        group,
        resource,
        verb,
      }));
      await untilAllowed(apiserver, `system:serviceaccount:${NAMESPACE}:${name}`, attributes);
    },
  };
}

/** Creates an object. @returns it as it was stored. */
export async function create<T>(apiserver: KubeApiserver, path: string, body: object): Promise<T> {
  const reply = await apiserver.request<T>('POST', path, body);
  if (reply.status === 201) return reply.body;
  throw new Error(`POST ${path} was answered by ${reply.status}: ${JSON.stringify(reply.body)}`);
}

/** Roles and bindings are known to the authorizer a moment after they were made, each in its own time. */
export async function untilAllowed(
  apiserver: KubeApiserver,
  user: string,
  attributes: readonly object[],
): Promise<void> {
  await eventually(async () => {
    for (const resourceAttributes of attributes) {
      const review = { spec: { user, resourceAttributes } };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const { status } = await create<{ status: { allowed: boolean } }>(apiserver, path, review);
      if (!status.allowed) throw new Error(`${user} may not yet ${JSON.stringify(resourceAttributes)}`);
    }
  });
}
