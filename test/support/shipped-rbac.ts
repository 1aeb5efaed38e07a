import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Permission } from '../../lib/kubernetes/permissions.ts';
import type { KubeApiserver } from './control-plane.ts';
import { eventually } from './eventually.ts';
import { kubeconfigTo } from './kubeconfig-to.ts';
import { rawRequests } from './raw-requests.ts';
import { readInRepository } from './repository.ts';
import { untilAllowed } from './service-account.ts';
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
