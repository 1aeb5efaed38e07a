/** The resources that the stand-in serves: what the four loops touch, and no more. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

const core = (kind: string, plural: string, namespaced: boolean): Resource => ({
  apiVersion: 'v1',
  kind,
  plural,
  namespaced,
});

export const NAMESPACES = core('Namespace', 'namespaces', false);
export const SERVICES = core('Service', 'services', true);
export const ENDPOINTS = core('Endpoints', 'endpoints', true);

const RESOURCES: readonly Resource[] = [
  NAMESPACES,
  SERVICES,
  ENDPOINTS,
  { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', plural: 'endpointslices', namespaced: true },
  { apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events', namespaced: true },
  { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', plural: 'servicecidrs', namespaced: false },
];

export interface Target {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name?: string;
}

/** What a request path names; `undefined` for a path that is not served. */
export function targetOf(path: string): Target | undefined {
  const segments = path.split('/').filter(Boolean).map(decodeURIComponent);
  const apiVersion = segments[0] === 'api' ? segments[1] : `${segments[1]}/${segments[2]}`;
  const rest = segments.slice(segments[0] === 'api' ? 2 : 3);
  const inNamespace = rest[0] === 'namespaces' && rest.length > 2;
  const [plural, name, subresource] = inNamespace ? rest.slice(2) : rest;
  const resource = RESOURCES.find((candidate) => candidate.apiVersion === apiVersion && candidate.plural === plural);
  if (resource === undefined || subresource !== undefined) return undefined;
  if (inNamespace !== resource.namespaced && (inNamespace || name !== undefined)) return undefined;
  return {
    resource,
    ...(inNamespace && rest[1] !== undefined && { namespace: rest[1] }),
    ...(name !== undefined && { name }),
  };
}
