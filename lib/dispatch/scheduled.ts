import type { LoopDefinition } from '../loops/pass.ts';
import { dispatch } from './dispatch.ts';
import { type Handler, invoked } from './invoked.ts';
import type { Summary } from './summary.ts';

/**
 * The handler of a loop's function. One cluster's failure is logged, recorded and part of the summary; only what concerns
 * them all (the event, the environment, the table) fails the invocation.
 */
export function scheduled(loop: LoopDefinition): Handler<Summary> {
  return (event, context) => invoked(loop.id, context, (invocation) => dispatch(loop, event, invocation));
}
