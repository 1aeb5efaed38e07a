import * as z from 'zod/mini';
import { writtenSpecShape } from '../../lib/cluster/cluster-spec.ts';
import { withoutIntegerBounds } from '../../lib/cluster/shapes.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

const HEAD = {
  title: 'Cluster spec of kube-bootstrap-controller',
  description:
    'A control plane and how it is maintained. docs/cluster-spec.md explains each field. Rules about two fields at once are checked when the spec is read.',
};

/** If nothing is published, no API server is required and leases are ignored. */
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

/**
 * Returns the JSON Schema (draft 2020-12) of a cluster spec as users write it. It accepts every spec that
 * `validateClusterSpec` accepts, and more: it is for editors only.
 */
export function specJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(writtenSpecShape, { io: 'input', override });
  return { ...HEAD, ...schema, ...SERVERS_REQUIRED };
}

/** Mappings have the defaults of their fields, and an omitted list is empty. */
function override({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  withoutIntegerBounds({ jsonSchema });
  const { default: standard } = jsonSchema;
  const isList = Array.isArray(standard) && standard.length > 0;
  if (typeof standard === 'object' && !isList) delete jsonSchema.default;
}
