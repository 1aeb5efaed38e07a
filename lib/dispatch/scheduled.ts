import type { LoopDefinition } from '../loops/pass.ts';
import { dispatch } from './dispatch.ts';
import type { InvocationContext } from './invoked.ts';
import { invoked } from './invoked.ts';
import type { Summary } from './summary.ts';

/**
 * The handler of a loop's function. One cluster's failure is told, recorded and part of the summary; only what concerns
 * them all (the event, the environment, the table) fails the invocation.
 */
export function scheduled(loop: LoopDefinition): (event: unknown, context: InvocationContext) => Promise<Summary> {
  return (event, context) => invoked(loop.id, context, (invocation) => dispatch(loop, event, invocation));
}
