import { jsonFieldsIn, parsedJson } from './json.ts';
import { groupOf, invalid, SERVED_RESOURCES, type ServedResource } from './resources.ts';

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update'];
const REVIEWS: ServedResource = {
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
};
const SERVED: readonly ServedResource[] = [...SERVED_RESOURCES, REVIEWS];
const GROUPS = [...new Set(SERVED.map(groupOf))].filter((group) => group !== '');
const versionOf = ({ apiVersion }: ServedResource) => `${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`;
const VERSIONS = [...new Set(SERVED.map(versionOf))];

/** Returns a discovery document: API groups, resources, or the part of their OpenAPI that kubectl reads before it writes. */
export function discoveryReply(path: string): object | undefined {
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: GROUPS.map(groupDocument) };
  if (path === '/openapi/v3') {
    return { paths: Object.fromEntries(VERSIONS.map((at) => [at, { serverRelativeURL: `/openapi/v3/${at}` }])) };
  }
  const described = VERSIONS.find((version) => path === `/openapi/v3/${version}`);
  if (described !== undefined) return openApiOf(described);
  const listed = VERSIONS.find((version) => path === `/${version}`);
  return listed === undefined ? undefined : resourceList(listed);
}

function groupDocument(name: string): object {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
}

function resourceList(version: string): object {
  const resources = SERVED.filter((resource) => versionOf(resource) === version).map((resource) => ({
    name: resource.plural,
    singularName: resource.kind.toLowerCase(),
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: resource === REVIEWS ? ['create'] : VERBS,
    ...(resource.shortName !== undefined && { shortNames: [resource.shortName] }),
    ...(resource.kind === 'Service' && { categories: ['all'] }),
  }));
  const groupVersion = version.slice(version.indexOf('/') + 1);
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

/** Returns the OpenAPI document of an API version. kubectl reads the parameters of PATCH in it before it writes. */
function openApiOf(version: string): object {
  const schema = { type: 'string' };
  const parameters = ['fieldManager', 'fieldValidation'].map((name) => ({ name, in: 'query', schema }));
  const paths = SERVED.filter((resource) => versionOf(resource) === version).map((resource) => {
    const kind = { group: groupOf(resource), version: 'v1', kind: resource.kind };
    const patch = { parameters, 'x-kubernetes-group-version-kind': kind };
    return [`/${version}/${resource.namespaced ? 'namespaces/{namespace}/' : ''}${resource.plural}/{name}`, { patch }];
  });
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version: 'stand-in' }, paths: Object.fromEntries(paths) };
}

/** Returns the reply to a SelfSubjectAccessReview, which allows everything; `undefined` for any other request. */
export function accessReviewReply(method: string, path: string, body: string): object | undefined {
  if (path !== `/apis/${REVIEWS.apiVersion}/${REVIEWS.plural}` || method !== 'POST') return undefined;
  const spec = jsonFieldsIn(jsonFieldsIn(parsedJson(body))['spec']);
  if ('resourceAttributes' in spec === 'nonResourceAttributes' in spec) {
    throw invalid(
      REVIEWS,
      '',
      'spec: Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified',
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
