import * as z from 'zod/mini';
import { clusterEventShape } from '../lib/dispatch/cluster-events.ts';

/** The JSON Schema (draft 2020-12) of the detail of an event (docs/events.md). */
export function clusterEventJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    title: 'Change of the state of a cluster',
    description: 'The detail of an event of kube-bootstrap-controller on the default event bus.',
    ...z.toJSONSchema(clusterEventShape, { io: 'input' }),
  };
}
