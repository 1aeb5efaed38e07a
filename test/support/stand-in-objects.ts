import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';

const COLLECTIONS = [
  '/api/v1/namespaces',
  '/api/v1/services',
  '/api/v1/endpoints',
  '/apis/discovery.k8s.io/v1/endpointslices',
  '/apis/events.k8s.io/v1/events',
  '/apis/networking.k8s.io/v1/servicecidrs',
];

/** Every object of the stand-in, as it is. */
export async function objectsIn(standIn: StandInApiServer): Promise<unknown> {
  const replies = await Promise.all(COLLECTIONS.map((path) => standIn.handle({ method: 'GET', path, headers: {} })));
  return replies.map(({ body }) => JSON.parse(body).items);
}
