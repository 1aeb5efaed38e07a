import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { validateClusterSpec } from '../../cli/spec/validate-cluster-spec.ts';
import { type JsonSchema, specJsonSchema } from '../../tools/json-schemas.ts';
import { aSpec, faultsOf, minimal } from '../cli/spec/spec-support.ts';
import { schemaFaults } from '../support/json-schema-check.ts';
import { readInRepository } from '../support/repository.ts';

const example = readInRepository('cluster.example.yml');
const schema = specJsonSchema();

/** Returns the paths of all fields and their schemas. */
function fieldsOf(part: JsonSchema, path = ''): (readonly [string, JsonSchema])[] {
  const { properties = {}, items } = part as { properties?: Record<string, JsonSchema>; items?: JsonSchema };
  const own = Object.entries(properties).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`;
    return [[at, field] as const, ...fieldsOf(field, at)];
  });
  return items === undefined ? own : [...own, ...fieldsOf(items, `${path}[]`)];
}

const fields = fieldsOf(schema);

test('the first line of the example names the committed schema by a relative path, for editors', () => {
  const [first = ''] = example.split('\n');
  const [, named = ''] = /^# yaml-language-server: \$schema=(\S+)$/.exec(first) ?? [];
  expect(JSON.parse(readInRepository(named))).toHaveProperty('$schema', 'https://json-schema.org/draft/2020-12/schema');
});

test('the schema and the rules accept the example', () => {
  expect(schemaFaults(schema, parse(example))).toEqual([]);
  expect(parseClusterSpec(example)).toHaveProperty('spec');
});

test('the schema describes every field', () => {
  expect(fields.filter(([, field]) => typeof field['description'] !== 'string').map(([path]) => path)).toEqual([]);
});

test('the schema refuses unknown fields in every mapping', () => {
  const open = [['', schema] as const, ...fields.map(([path, field]) => [path, itemOf(field)] as const)]
    .filter(([, field]) => field['properties'] !== undefined && field['additionalProperties'] !== false)
    .map(([path]) => path);
  expect(open).toEqual([]);
});

test('the schema accepts its own examples and defaults', () => {
  const untaken = fields.flatMap(([path, field]) => {
    const { examples = [], default: standard, ...rest } = field;
    const values = [...(examples as unknown[]), ...(standard === undefined ? [] : [standard])];
    return values.flatMap((value) => schemaFaults(rest, value).map((fault) => path + fault));
  });
  expect(untaken).toEqual([]);
});

test('the schema contains the same defaults as the rules', () => {
  const result = validateClusterSpec({ ...minimal, endpoints: { extraPorts: [{ name: 'a', port: 1 }] } });
  const filled: unknown = 'spec' in result ? result.spec : undefined;
  // These fields have no single default to compare.
  const others = /^service\.extraPorts|^apiServers\[\]\.probe$|^serviceClusterIPRange$/;
  const compared = fields.filter(([path, field]) => field['default'] !== undefined && !others.test(path));
  const valueAt = (path: string) =>
    path
      .replaceAll('[]', '.0')
      .split('.')
      .reduce<unknown>((at, step) => Object(at)[step], filled);
  expect(compared.length).toBeGreaterThan(10);
  expect(compared.map(([path]) => [path, valueAt(path)])).toEqual(
    compared.map(([path, field]) => [path, field['default']]),
  );
});

function itemOf(field: JsonSchema): JsonSchema {
  return (field['items'] as JsonSchema | undefined) ?? field;
}

/* test/cli/spec/written-spec.test.ts has a property for usual values. */
test.each([
  { mode: 'enforce', allocator: 'table', callerKeys: ['a'.repeat(64)], maxEventsPerPass: 0 },
  { apiServers: [{ address: '::ffff:10.0.0.2', probe: { url: 'HTTP://a' } }] },
  { serviceClusterIPRange: '10.0.0.0/16,fd00::/112', serviceNodePortRange: '30000+1' },
  { endpoints: { reconciler: 'master-count', masterCount: 86_401 } },
  { endpoints: { leaseSeconds: 86_400 }, intervalSeconds: { 'kubernetes-service': 60, 'node-port-repair': 180 } },
  { kubeconfig: { ssm: '/a/b', context: 'admin' } },
  { apiServers: [{ host: 'api.example.com', kind: 'shared' }] },
  { apiServers: [{ serviceRef: { namespace: 'a', name: 'b', kubeconfig: { ssm: '/a/b' } }, kind: 'shared' }] },
  { apiServers: [{ address: '010.0.0.1', kind: 'shared' }] },
  { apiServers: [], endpoints: { reconciler: 'none', leaseSeconds: 0 } },
  { serviceClusterIPRange: '', serviceNodePortRange: '' },
])('the schema accepts a spec with %j', (given) => {
  expect(faultsOf(aSpec(given))).toEqual([]);
  expect(schemaFaults(schema, aSpec(given))).toEqual([]);
});

const { apiServers: _, ...withoutServers } = minimal;
const ONE_OF = '/apiServers/0: must match exactly one schema in oneOf';
test.each([
  [null, ': must be object'],
  [aSpec({ naem: 'x' }), ': must NOT have additional properties'],
  [withoutServers, ": must have required property 'apiServers'"],
  [aSpec({ apiServers: [] }), '/apiServers: must NOT have fewer than 1 items'],
  [aSpec({ kubeconfig: { file: 'a', ssm: 'b' } }), '/kubeconfig: must match exactly one schema in oneOf'],
  [aSpec({ apiServers: [{ address: '10.0.0.1', host: 'a.b' }] }), ONE_OF],
  [aSpec({ apiServers: [{ host: 'a.b', kind: 'server' }] }), ONE_OF],
  [aSpec({ serviceClusterIPRange: ['a', 'b', 'c'] }), '/serviceClusterIPRange: must match a schema in anyOf'],
  [aSpec({ intervalSeconds: { 'node-port-repair': 9 } }), '/intervalSeconds/node-port-repair: must be multiple of 180'],
  [aSpec({ service: { securePort: 70_000 } }), '/service/securePort: must be <= 65535'],
])('the schema refuses %j with the fault "%s"', (value, fault) => {
  expect(faultsOf(value)).not.toEqual([]);
  expect(schemaFaults(schema, value)).toContain(fault);
});

test('the page about the spec has a row for each field', () => {
  const page = readInRepository('docs/cluster-spec.md');
  const documented = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path]) => path);
  const leaves = fields.filter(([, field]) => field['properties'] === undefined).map(([path]) => path);
  // The page has one row for all fields of a kubeconfig within another field.
  const rows = new Set(leaves.map((path) => path.replace(/(?<=\.kubeconfig)\..+/, '')));
  expect(documented.toSorted()).toEqual([...rows].toSorted());
});
