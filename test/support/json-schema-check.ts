import { isDeepStrictEqual } from 'node:util';

type Schema = boolean | Readonly<Record<string, unknown>>;

/**
 * What is wrong with a value by a JSON Schema: the paths and keywords that it does not meet. As much of draft 2020-12 as
 * the schemas of this project use; a keyword that is none of them throws, or it would pass for met.
 */
export function schemaFaults(schema: Schema, value: unknown, path = ''): string[] {
  if (typeof schema === 'boolean') return schema ? [] : [`${path}: not allowed`];
  return Object.entries(schema).flatMap(([keyword, rule]) => {
    if (ANNOTATIONS.has(keyword)) return [];
    const check = KEYWORDS[keyword];
    if (check === undefined) throw new Error(`the keyword ${keyword} at ${path} is not known to this check`);
    // Each check knows what its keyword's rule looks like.
    return check(rule as never, value, path, schema);
  });
}

const ANNOTATIONS = new Set(['$schema', 'title', 'description', 'default', 'examples', 'format', 'then', 'else']);

type Check = (rule: never, value: unknown, path: string, schema: Readonly<Record<string, unknown>>) => string[];

const KEYWORDS: Readonly<Record<string, Check>> = {
  type: (rule: string | string[], value, path) =>
    told(
      [rule].flat().some((type) => isOfType(type, value)),
      path,
      `is no ${rule}`,
    ),
  enum: (rule: unknown[], value, path) => told(rule.includes(value), path, 'is none of the enum'),
  const: (rule, value, path) => told(isDeepStrictEqual(rule, value), path, 'is not the const'),
  pattern: (rule: string, value, path) =>
    told(typeof value !== 'string' || new RegExp(rule, 'u').test(value), path, 'does not match'),
  minLength: (rule: number, value, path) => told(typeof value !== 'string' || value.length >= rule, path, 'too short'),
  maxLength: (rule: number, value, path) => told(typeof value !== 'string' || value.length <= rule, path, 'too long'),
  minimum: (rule: number, value, path) => told(typeof value !== 'number' || value >= rule, path, 'too small'),
  maximum: (rule: number, value, path) => told(typeof value !== 'number' || value <= rule, path, 'too large'),
  multipleOf: (rule: number, value, path) =>
    told(typeof value !== 'number' || value % rule === 0, path, `no multiple of ${rule}`),
  minItems: (rule: number, value, path) => told(!Array.isArray(value) || value.length >= rule, path, 'too few'),
  maxItems: (rule: number, value, path) => told(!Array.isArray(value) || value.length <= rule, path, 'too many'),
  uniqueItems: (_rule, value, path) =>
    told(!Array.isArray(value) || new Set(value).size === value.length, path, 'has one twice'),
  items: (rule: Schema, value, path) =>
    Array.isArray(value) ? value.flatMap((item, index) => schemaFaults(rule, item, `${path}[${index}]`)) : [],
  properties: (rule: Readonly<Record<string, Schema>>, value, path) =>
    Object.entries(rule).flatMap(([name, field]) =>
      isMapping(value) && name in value ? schemaFaults(field, value[name], `${path}.${name}`) : [],
    ),
  additionalProperties: (_rule: false, value, path, { properties }) =>
    isMapping(value) && isMapping(properties)
      ? Object.keys(value).flatMap((name) => told(name in properties, `${path}.${name}`, 'is not a field'))
      : [],
  required: (rule: string[], value, path) =>
    rule.flatMap((name) => told(!isMapping(value) || name in value, `${path}.${name}`, 'is required')),
  anyOf: (rule: Schema[], value, path) => told(matching(rule, value) > 0, path, 'matches none of anyOf'),
  oneOf: (rule: Schema[], value, path) => told(matching(rule, value) === 1, path, 'does not match one of oneOf'),
  not: (rule: Schema, value, path) => told(schemaFaults(rule, value).length > 0, path, 'matches not'),
  if: (rule: Schema, value, path, { then: yes = true, else: no = true }) =>
    schemaFaults((schemaFaults(rule, value).length === 0 ? yes : no) as Schema, value, path),
};

function matching(schemas: readonly Schema[], value: unknown): number {
  return schemas.filter((schema) => schemaFaults(schema, value).length === 0).length;
}

function told(met: boolean, path: string, fault: string): string[] {
  return met ? [] : [`${path}: ${fault}`];
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isMapping(value) : typeof value === type;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
