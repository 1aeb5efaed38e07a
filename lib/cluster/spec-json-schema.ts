import * as z from 'zod/mini';
import { SPEC_FIELDS } from './spec-fields.ts';
import { SPEC_DEFAULTS, specShape } from './spec-shape.ts';

/** A JSON Schema, or a part of one. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const HEAD = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Cluster spec of kube-bootstrap-controller',
  description:
    'Which control plane is kept, and how. docs/cluster-spec.md explains it. What no schema can say of two fields at once is checked when the spec is read.',
};

/** Where nothing is published nobody need serve, and leases are not looked at. */
const WHO_SERVES = {
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
 * The JSON Schema (draft 2020-12) of a cluster spec as people write it, with defaults left out. Every spec that
 * `validateClusterSpec` takes is good by it. For editors: it says less than the rules, and nothing is decided by it.
 */
export function specJsonSchema(): JsonSchema {
  const shape = z.toJSONSchema(specShape, { io: 'input' });
  const { $schema: _, ...written } = asWritten(shape, '', SPEC_DEFAULTS);
  return { ...HEAD, ...written, ...WHO_SERVES };
}

/** The part of the shape at `path`, with the words for it, and with what has a default no longer required. */
function asWritten(shape: JsonSchema, path: string, standard: unknown): JsonSchema {
  const { properties, required, items, ...rest } = withoutBounds(shape);
  const words = SPEC_FIELDS[path];
  const fields = mapping(properties);
  const item = mapping(items);
  const defaults = mapping(standard) ?? {};
  const needed = listed(required).filter((name) => !(String(name) in defaults));
  return {
    ...(words && { description: words.description }),
    ...rest,
    ...(isWorthSaying(standard) && { default: standard }),
    ...words,
    ...(fields && { properties: eachField(fields, path, defaults) }),
    ...(needed.length > 0 && { required: needed }),
    ...(item && { items: asWritten(item, `${path}[]`, undefined) }),
  };
}

/** Mappings have the defaults of their fields, and an empty list is what leaving it out means. */
function isWorthSaying(standard: unknown): boolean {
  return (
    standard !== undefined && mapping(standard) === undefined && !(Array.isArray(standard) && standard.length === 0)
  );
}

function eachField(fields: JsonSchema, path: string, defaults: JsonSchema): JsonSchema {
  const around = path === '' ? '' : `${path}.`;
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      asWritten(mapping(field) ?? {}, `${around}${name}`, defaults[name]),
    ]),
  );
}

/** Without the bounds of whole numbers as such, which tell nobody anything. */
function withoutBounds({ minimum, maximum, ...schema }: JsonSchema): JsonSchema {
  return {
    ...schema,
    ...(minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER && { minimum }),
    ...(maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER && { maximum }),
  };
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mapping(value: unknown): JsonSchema | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : undefined;
}
