import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { KINDS } from './kubernetes-service-objects.ts';

/** Every object of the stand-in, as it is. */
export async function objectsIn(standIn: StandInApiServer): Promise<unknown> {
  const replies = await Promise.all(KINDS.map((path) => standIn.handle({ method: 'GET', path, headers: {} })));
  return replies.map(({ body }) => JSON.parse(body).items);
}
