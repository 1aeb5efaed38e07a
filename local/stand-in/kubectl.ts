import type { ServicePort } from '../../lib/cluster/published-objects.ts';
import { formatAge } from '../../lib/util/age.ts';
import type { StoredObject } from './object-store.ts';
import { jsonFieldsIn, jsonListIn, parsedJson } from './requests.ts';
import { groupOf, SERVED_RESOURCES, type ServedResource } from './resources.ts';
import type { StoredServiceSpec } from './service-storage.ts';

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update'];
const REVIEWS: ServedResource = {
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
};
const SERVED: readonly ServedResource[] = [...SERVED_RESOURCES, REVIEWS];
const GROUPS = [...new Set(SERVED.map(groupOf))].filter(Boolean).map((name) => {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
});
const versionOf = ({ apiVersion }: ServedResource) => `${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`;
const BY_VERSION = Map.groupBy(SERVED, versionOf);

/** Returns a discovery document: API groups, resources, or the part of their OpenAPI that kubectl reads before it writes. */
export function discoveryReply(path: string): object | undefined {
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: GROUPS };
  if (path === '/openapi/v3') {
    const paths = [...BY_VERSION.keys()].map((version) => [version, { serverRelativeURL: `/openapi/v3/${version}` }]);
    return { paths: Object.fromEntries(paths) };
  }
  for (const [version, served] of BY_VERSION) {
    if (path === `/openapi/v3/${version}`) return openApiOf(version, served);
    if (path === `/${version}`) return resourceList(version, served);
  }
  return undefined;
}

function resourceList(version: string, served: readonly ServedResource[]): object {
  const resources = served.map((resource) => ({
    name: resource.plural,
    singularName: resource.kind.toLowerCase(),
    namespaced: resource.namespaced,
    kind: resource.kind,
    verbs: resource === REVIEWS ? ['create'] : VERBS,
    ...(resource.shortName && { shortNames: [resource.shortName] }),
    ...(resource.kind === 'Service' && { categories: ['all'] }),
  }));
  const groupVersion = version.slice(version.indexOf('/') + 1);
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}

/** Returns the OpenAPI document of an API version. Before a write, kubectl reads the parameters of PATCH in this document. */
function openApiOf(version: string, served: readonly ServedResource[]): object {
  const schema = { type: 'string' };
  const parameters = ['fieldManager', 'fieldValidation'].map((name) => ({ name, in: 'query', schema }));
  const paths = served.map((resource) => {
    const kind = { group: groupOf(resource), version: 'v1', kind: resource.kind };
    const patch = { parameters, 'x-kubernetes-group-version-kind': kind };
    return [`/${version}/${resource.namespaced ? 'namespaces/{namespace}/' : ''}${resource.plural}/{name}`, { patch }];
  });
  return { openapi: '3.0.0', info: { title: 'Kubernetes', version: 'stand-in' }, paths: Object.fromEntries(paths) };
}

/** Returns the reply to a SelfSubjectAccessReview: everything is allowed; `undefined` for any other request. */
export function accessReviewReply(method: string, path: string, body: string): object | undefined {
  if (path !== `/apis/${REVIEWS.apiVersion}/${REVIEWS.plural}` || method !== 'POST') return undefined;
  const { kind, apiVersion } = REVIEWS;
  const { spec } = jsonFieldsIn(parsedJson(body));
  return { kind, apiVersion, metadata: {}, spec, status: { allowed: true, reason: 'the stand-in knows no users' } };
}

// Columns and cells of `pkg/printers/internalversion/printers.go`. Other kinds have a name and an age.

/** Functions that return the cells of an object, by the names of their columns. */
type Columns = Readonly<Record<string, (object: StoredObject, nowMs: number) => string>>;

const NAME: Columns = { Name: ({ metadata }) => metadata.name };
const AGE: Columns = {
  Age: ({ metadata: { creationTimestamp: at } }, nowMs) => (at ? formatAge(nowMs - Date.parse(at)) : '<unknown>'),
};

const COLUMNS: Readonly<Record<string, Columns>> = {
  Namespace: { ...NAME, Status: (object) => String(jsonFieldsIn(object['status'])['phase'] ?? ''), ...AGE },
  Service: {
    ...NAME,
    Type: (object) => specOf(object).type ?? '',
    'Cluster-IP': (object) => specOf(object).clusterIPs?.[0] ?? '<none>',
    'External-IP': (object) => externalAddress(specOf(object)),
    'Port(s)': (object) => (specOf(object).ports ?? []).map(portText).join(',') || '<none>',
    ...AGE,
  },
  Endpoints: { ...NAME, Endpoints: (object) => addressesIn(object).join(',') || '<none>', ...AGE },
};

/** Returns the `Table` with the columns that `kubectl get` prints, and the metadata of each object. */
export function tableOf(
  { kind }: ServedResource,
  objects: readonly StoredObject[],
  metadata: object,
  nowMs: number,
): object {
  const columns = COLUMNS[kind] ?? { ...NAME, ...AGE };
  const definitionOf = (name: string) => {
    return { name, type: 'string', format: name === 'Name' ? 'name' : '', description: '', priority: 0 };
  };
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: Object.keys(columns).map(definitionOf),
    rows: objects.map((object) => ({
      cells: Object.values(columns).map((cell) => cell(object, nowMs)),
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
    })),
  };
}

function specOf(object: StoredObject): StoredServiceSpec {
  return jsonFieldsIn(object['spec']);
}

function externalAddress({ type, externalIPs, externalName }: StoredServiceSpec): string {
  if (type === 'ExternalName') return String(externalName);
  return [externalIPs ?? []].flat().join(',') || (type === 'LoadBalancer' ? '<pending>' : '<none>');
}

function portText({ port, nodePort = 0, protocol = 'TCP' }: ServicePort): string {
  return nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}

function addressesIn(object: StoredObject): string[] {
  return jsonListIn(object['subsets']).flatMap(({ addresses, ports }) =>
    jsonListIn(ports).flatMap(({ port }) => jsonListIn(addresses).map(({ ip }) => `${ip}:${port}`)),
  );
}
