import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Permission } from '../../lib/kubernetes/permissions.ts';
import type { KubeApiserver } from './control-plane.ts';
import { eventually } from './eventually.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { rawRequests } from './raw-requests.ts';
import { readInRepository } from './repository.ts';
import { temporaryFolder } from './temporary-folder.ts';

interface RbacObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** Returns the objects of `deploy/rbac.yaml` in their order. @param namespace is added to the namespaces of its policy */
export function shippedRbac(namespace?: string): readonly RbacObject[] {
  const file = readInRepository('deploy/rbac.yaml');
  const text =
    namespace === undefined ? file : file.replace("'kube-node-lease']", `'kube-node-lease', '${namespace}']`);
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    return document.toJS() as RbacObject;
  });
}

/**
 * Applies `deploy/rbac.yaml` and requests a token of its service account, as docs/kubeconfig-secret.md does with kubectl.
 * @returns the token and a kubeconfig file with it, once the API server applies all rules
 */
export async function applyShippedRbac(apiserver: KubeApiserver, namespace?: string) {
  const objects = shippedRbac(namespace);
  for (const object of objects) await apiserver.send('POST', collectionOf(object), object);
  const account = objects.find(({ kind }) => kind === 'ServiceAccount');
  if (account === undefined) throw new Error('deploy/rbac.yaml has no ServiceAccount');
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 86_400 } };
  const path = `${collectionOf(account)}/${account.metadata.name}/token`;
  const { status } = await apiserver.send<{ status: { token: string } }>('POST', path, request);
  const { name, namespace: ofAccount } = account.metadata;
  await untilAllowed(apiserver, `system:serviceaccount:${ofAccount}:${name}`, objects.flatMap(grantsOf));
  await eventually(() => expectPolicyHeeded(apiserver, status.token));
  const { token } = status;
  const kubeconfigFile = join(temporaryFolder(), 'kubeconfig');
  writeFileSync(kubeconfigFile, kubeconfigTo(apiserver.url, { ca: apiserver.ca, user: { token } }));
  return { kubeconfigFile, token };
}

/** Checks that the API server applies the policy, which takes a moment. */
async function expectPolicyHeeded({ url, caFile }: KubeApiserver, token: string): Promise<void> {
  const { request, close } = rawRequests({ url, caFile, token });
  try {
    const namespace = { metadata: { name: 'not-of-the-loops' } };
    const reply = await request('POST', '/api/v1/namespaces?dryRun=All', namespace);
    if (reply.status !== 403) throw new Error(`the policy does not yet refuse a namespace: ${JSON.stringify(reply)}`);
  } finally {
    await close();
  }
}

/** Returns the permissions that a Role or ClusterRole grants. */
export function grantsOf({ metadata: { namespace }, rules = [] }: RbacObject): Permission[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((name) => verbs.map((verb) => ({ namespace, group, resource, name, verb }))),
      ),
    ),
  );
}

function collectionOf({ apiVersion, kind, metadata: { namespace } }: RbacObject): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${kind.toLowerCase()}s`.replace(/ys$/, 'ies');
  return `${group}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}`;
}

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
async function untilAllowed(apiserver: KubeApiserver, user: string, attributes: readonly object[]): Promise<void> {
  await eventually(async () => {
    for (const resourceAttributes of attributes) {
      const review = { spec: { user, resourceAttributes } };
      const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
      const { status } = await apiserver.send<{ status: { allowed: boolean } }>('POST', path, review);
      if (!status.allowed) throw new Error(`${user} may not yet ${JSON.stringify(resourceAttributes)}`);
    }
  });
}
