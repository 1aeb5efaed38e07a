import { groupOf, recordIn, SERVED_RESOURCES, type ServedResource, StatusError } from './resources.ts';

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update'];
const REVIEWS: ServedResource = {
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
};
const SERVED: readonly ServedResource[] = [...SERVED_RESOURCES, REVIEWS];
const GROUPS = [...new Set(SERVED.map(groupOf))].filter((group) => group !== '');

/** Returns a document of discovery: API groups and resources, and as much of their OpenAPI as kubectl needs to write. */
export function discoveryReply(path: string): object | undefined {
  const [root, group = '', version = ''] = path.split('/').slice(1);
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: GROUPS.map(groupDocument) };
  if (path === '/openapi/v3') {
    const apiVersions = new Set(SERVED.map(({ apiVersion }) => apiVersion));
    return { paths: Object.fromEntries([...apiVersions].map(openApiEntry)) };
  }
  if (path.startsWith('/openapi/v3/')) return openApiOf(path.slice('/openapi/v3/'.length).replace(/^apis?\//, ''));
  if (root === 'api' && version === '') return resourceList(group);
  if (root !== 'apis') return undefined;
  if (version !== '') return path.split('/').length === 4 ? resourceList(`${group}/${version}`) : undefined;
  return GROUPS.includes(group) ? { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(group) } : undefined;
}

function groupDocument(name: string): object {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
}

function resourceList(apiVersion: string): object | undefined {
  const resources = SERVED.filter((resource) => resource.apiVersion === apiVersion);
  if (resources.length === 0) return undefined;
  const documents = resources.map((resource) => ({
    name: resource.plural,
    singularName: resource.kind.toLowerCase(),
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: resource === REVIEWS ? ['create'] : VERBS,
    ...(resource.shortName !== undefined && { shortNames: [resource.shortName] }),
    ...(resource.kind === 'Service' && { categories: ['all'] }),
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersion, resources: documents };
}

function openApiEntry(apiVersion: string): [string, object] {
  const path = `${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`;
  return [path, { serverRelativeURL: `/openapi/v3/${path}` }];
}

/** kubectl reads the parameters of a PATCH there before it writes, and the schema of a kind in "kubectl explain". */
function openApiOf(apiVersion: string): object | undefined {
  const resources = SERVED.filter((resource) => resource.apiVersion === apiVersion);
  if (resources.length === 0) return undefined;
  const [root] = openApiEntry(apiVersion);
  const schema = { type: 'string' };
  const parameters = ['fieldManager', 'fieldValidation'].map((name) => ({ name, in: 'query', schema }));
  const kindOf = (resource: ServedResource) => ({ group: groupOf(resource), version: 'v1', kind: resource.kind });
  const paths = resources.map((resource) => {
    const scope = resource.namespaced ? 'namespaces/{namespace}/' : '';
    const patch = { parameters, 'x-kubernetes-group-version-kind': kindOf(resource) };
    return [`/${root}/${scope}${resource.plural}/{name}`, { patch }];
  });
  const description = 'The stand-in API server has no schema. Ask a real one.';
  const schemas = resources.map((resource) => {
    return [resource.kind, { type: 'object', description, 'x-kubernetes-group-version-kind': [kindOf(resource)] }];
  });
  const info = { title: 'Kubernetes', version: 'stand-in' };
  const components = { schemas: Object.fromEntries(schemas) };
  return { openapi: '3.0.0', info, paths: Object.fromEntries(paths), components };
}

/** Returns the reply to a SelfSubjectAccessReview, which allows everything; `undefined` for any other request. */
export function accessReviewReply(method: string, path: string, body: string): object | undefined {
  if (path !== `/apis/${REVIEWS.apiVersion}/${REVIEWS.plural}` || method !== 'POST') return undefined;
  const spec = recordIn(recordIn(parsed(body))['spec']);
  if ('resourceAttributes' in spec === 'nonResourceAttributes' in spec) {
    const problem = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    throw new StatusError(
      422,
      'Invalid',
      `SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec: ${problem}`,
    );
  }
  return {
    kind: 'SelfSubjectAccessReview',
    apiVersion: 'authorization.k8s.io/v1',
    metadata: {},
    spec,
    status: { allowed: true, reason: 'the stand-in knows no users' },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
