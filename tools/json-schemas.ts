import * as z from 'zod/mini';
import { answerShape } from '../lib/allocate/answer.ts';
import { requestShape } from '../lib/allocate/request.ts';
import { clusterEventShape } from '../lib/dispatch/report-pass.ts';
import { writtenSpecShape } from '../lib/spec/cluster-spec.ts';
import { withoutIntegerBounds } from '../lib/spec/shapes.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A spec needs API servers and a valid lease time, unless its reconciler is `none`: leases are then ignored. */
const SERVERS_REQUIRED = {
  if: {
    properties: { endpoints: { properties: { reconciler: { const: 'none' } }, required: ['reconciler'] } },
    required: ['endpoints'],
  },
  else: {
    required: ['apiServers'],
    properties: {
      apiServers: { minItems: 1 },
      endpoints: { properties: { leaseSeconds: { minimum: 1, maximum: 86_400 } } },
    },
  },
};

/** The schema of a cluster spec for editors. It accepts every spec that `validateClusterSpec` accepts, and more. */
export const SPEC_SCHEMA: JsonSchema = {
  title: 'Cluster spec of kube-bootstrap-controller',
  description:
    'A control plane and how it is maintained. docs/cluster-spec.md explains each field. Rules about two fields at once are checked when the spec is read.',
  ...z.toJSONSchema(writtenSpecShape, { io: 'input', override }),
  ...SERVERS_REQUIRED,
};

export const REQUEST_SCHEMA: JsonSchema = {
  title: 'Request to allocate, release or look up',
  description: 'The event of the function allocate of kube-bootstrap-controller.',
  ...z.toJSONSchema(requestShape, { io: 'input', override: withoutIntegerBounds }),
};

export const ANSWER_SCHEMA: JsonSchema = {
  title: 'Answer to a request to allocate, release or look up',
  description: 'What the function allocate of kube-bootstrap-controller answers.',
  ...z.toJSONSchema(answerShape, { override: withoutIntegerBounds }),
};

/** The schema of the detail of an event (docs/events.md). */
export const EVENT_SCHEMA: JsonSchema = {
  title: 'Change of the state of a cluster',
  description: 'The detail of an event of kube-bootstrap-controller on the default event bus.',
  ...z.toJSONSchema(clusterEventShape, { io: 'input' }),
};

/** Removes each default that is an empty list or a mapping. The fields of a mapping have defaults themselves. */
function override({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  withoutIntegerBounds({ jsonSchema });
  const { default: standard } = jsonSchema;
  const isList = Array.isArray(standard) && standard.length > 0;
  if (typeof standard === 'object' && !isList) delete jsonSchema.default;
}
