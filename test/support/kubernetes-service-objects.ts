import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { EndpointSliceObject, EndpointsObject, ServiceObject } from '../../lib/cluster/published-objects.ts';
import type { KubeApiserver } from './control-plane.ts';

const DEFAULT_NAMESPACE = '/api/v1/namespaces/default';
export const SERVICE_PATH = `${DEFAULT_NAMESPACE}/services/kubernetes`;
export const ENDPOINTS_PATH = `${DEFAULT_NAMESPACE}/endpoints/kubernetes`;
export const SLICE_PATH = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes';

export const KINDS = [
  '/api/v1/namespaces',
  '/api/v1/services',
  '/api/v1/endpoints',
  '/apis/discovery.k8s.io/v1/endpointslices',
  '/apis/events.k8s.io/v1/events',
  '/apis/networking.k8s.io/v1/servicecidrs',
];

/** The Service `default/kubernetes`, its Endpoints and its EndpointSlice in an API server. Missing objects are absent. */
export interface KubernetesServiceObjects {
  readonly service?: ServiceObject;
  readonly endpoints?: EndpointsObject;
  readonly slice?: EndpointSliceObject;
}

export async function kubernetesServiceObjects({ request }: Requests): Promise<KubernetesServiceObjects> {
  const service = await object<ServiceObject>(request, SERVICE_PATH);
  const endpoints = await object<EndpointsObject>(request, ENDPOINTS_PATH);
  const slice = await object<EndpointSliceObject>(request, SLICE_PATH);
  return { ...(service && { service }), ...(endpoints && { endpoints }), ...(slice && { slice }) };
}

/** Returns the versions of these objects. If two calls return the same versions, no object was written in between. */
export async function versionsOf(apiserver: Requests): Promise<Readonly<Record<string, string | undefined>>> {
  const objects = Object.entries<KubernetesObject>({ ...(await kubernetesServiceObjects(apiserver)) });
  return Object.fromEntries(objects.map(([name, { metadata }]) => [name, metadata.resourceVersion]));
}

/**
 * Returns the versions of all objects that the loops can write. If two calls return the same versions, no object was written in
 * between.
 */
export async function versionsOfEverything({ request }: Requests): Promise<readonly string[]> {
  const lists = KINDS.map(async (kind) => {
    const { body } = await request<{ items: readonly KubernetesObject[] }>('GET', kind);
    return body.items.map(({ metadata: { namespace = '', name, resourceVersion } }) =>
      [kind, namespace, name, resourceVersion].join(' '),
    );
  });
  return (await Promise.all(lists)).flat();
}

export async function published(apiserver: Requests): Promise<{ endpoints: string[]; slice: string[] }> {
  const { endpoints, slice } = await kubernetesServiceObjects(apiserver);
  return {
    endpoints: (endpoints?.subsets ?? []).flatMap(({ addresses = [] }) => addresses.map(({ ip }) => ip)),
    slice: (slice?.endpoints ?? []).flatMap(({ addresses }) => addresses),
  };
}

type Requests = Pick<KubeApiserver, 'request'>;

async function object<T>(request: Requests['request'], path: string): Promise<T | undefined> {
  const { status, body } = await request<T>('GET', path);
  if (status === 404) return undefined;
  if (status !== 200) throw new Error(`GET ${path} was answered by ${status}: ${JSON.stringify(body)}`);
  return body;
}
