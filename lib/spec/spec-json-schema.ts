import * as z from 'zod/mini';
import { withoutIntegerBounds } from '../cluster/described.ts';
import { isRecord } from '../cluster/values.ts';
import { SPEC_DEFAULTS, specShape } from './spec-fields.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

const HEAD = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
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
  const shape = z.toJSONSchema(specShape, { io: 'input', override: withoutIntegerBounds });
  const { $schema: _, ...written } = asWritten(shape, SPEC_DEFAULTS);
  return { ...HEAD, ...written, ...SERVERS_REQUIRED };
}

/** Returns the part of the shape, with fields optional that have a default. */
function asWritten(shape: JsonSchema, standard: unknown): JsonSchema {
  const { properties, required, items, ...rest } = shape;
  const fields = mapping(properties);
  const item = mapping(items);
  const defaults = mapping(standard) ?? {};
  const needed = listed(required).filter((name) => !(String(name) in defaults));
  return {
    ...rest,
    ...(isWorthSaying(standard) && { default: standard }),
    ...(fields && { properties: eachField(fields, defaults) }),
    ...(needed.length > 0 && { required: needed }),
    ...(item && { items: asWritten(item, undefined) }),
  };
}

/** Mappings have the defaults of their fields, and an omitted list is empty. */
function isWorthSaying(standard: unknown): boolean {
  return (
    standard !== undefined && mapping(standard) === undefined && !(Array.isArray(standard) && standard.length === 0)
  );
}

function eachField(fields: JsonSchema, defaults: JsonSchema): JsonSchema {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, asWritten(mapping(field) ?? {}, defaults[name])]),
  );
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mapping(value: unknown): JsonSchema | undefined {
  return isRecord(value) ? value : undefined;
}
