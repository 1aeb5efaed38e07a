import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parse, stringify } from 'yaml';
import { parseClusterSpec, validateClusterSpec } from '../../../cli/spec/parse-cluster-spec.ts';
import { describeFaults, fault } from '../../../cli/spec/spec-fault.ts';
import { differenceLine, specDifference, writtenSpec } from '../../../cli/spec/written-spec.ts';
import { type ClusterSpec, SCHEDULE_SECONDS } from '../../../lib/spec/cluster-spec.ts';
import { type JsonSchema, SPEC_SCHEMA } from '../../../tools/json-schemas.ts';
import { aClusterSpec, aHost, aServer } from '../../support/a-cluster-spec.ts';
import { schemaFaults } from '../../support/json-schema-check.ts';
import { runs } from '../../support/properties.ts';
import { readInRepository } from '../../support/repository.ts';
import { aSpec, faultsOf, minimal } from './spec-support.ts';

const schema = SPEC_SCHEMA;

/** Generates objects with any subset of these fields. */
const some = <Fields extends object>(fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> }) =>
  fc.record(fields, { requiredKeys: [] });
const everyTimes = (seconds: number) => fc.integer({ min: 1, max: 4 }).map((times) => times * seconds);
const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}[a-z0-9]$/);
const label = fc.constantFrom('null', 'true', 'on', 'web', 'e1', '0x1', '12', '1-2', '2026-01-02');
const port = fc.integer({ min: 30_000, max: 30_100 });
const protocol = fc.constantFrom('TCP', 'UDP', 'SCTP');
const servicePort = fc.record({ name: label, port, protocol, targetPort: port }, { requiredKeys: ['name', 'port'] });
const probe = fc.oneof(
  some({ path: fc.constantFrom('/readyz', '/livez?a=b'), serverName: word, authenticate: fc.boolean() }),
  fc.record({ url: fc.constant('https://10.20.0.11:6443/readyz') }),
);
const TARGET_GROUPS = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup';
const apiServer = fc.oneof(
  fc.record({ address: fc.ipV4(), kind: fc.constantFrom('server', 'shared'), probe }, { requiredKeys: ['address'] }),
  fc.record({ host: word.map((name) => `${name}.example.com`), probe }, { requiredKeys: ['host'] }),
  fc.record({ targetGroupArn: word.map((name) => `${TARGET_GROUPS}/${name}/0a`) }),
  fc.record({ serviceRef: fc.record({ namespace: word, name: word, kubeconfig: fc.constant({ ssm: '/a' }) }) }),
);
const kubeconfig = fc.oneof(
  fc.record({ file: label, context: label }, { requiredKeys: ['file'] }),
  fc.record({ ssm: fc.constant('/a/b'), roleArn: fc.constant('arn:aws:iam::123456789012:role/read') }),
  fc.record({ secretsManager: word, context: word }, { requiredKeys: ['secretsManager'] }),
  fc.record({ webIdentity: fc.record({ server: word.map((name) => `https://${name}:6443`) }) }),
);
const RANGES = ['10.0.0.0/24', '10.9.0.0/16,fd00::/112', ['10.9.0.0/20', 'FD00:0::/112'], ['10.9.0.0/20']];
/** Generates spec files, some of which are not valid. */
const files = fc
  .record({
    name: label.filter((text) => /^[a-z0-9-]+$/.test(text)),
    mode: fc.constantFrom('observe', 'enforce'),
    kubeconfig,
    apiServers: fc.array(apiServer, { minLength: 1, maxLength: 3 }),
  })
  .chain((needed) =>
    some({
      allocator: fc.constantFrom('table', 'apiserver'),
      serviceClusterIPRange: fc.constantFrom<string | string[]>(...RANGES),
      serviceNodePortRange: fc.constantFrom<string | number>('30000-32767', '30000+100', '30000-30100', 30_000),
      endpoints: some({
        reconciler: fc.constantFrom('lease', 'master-count', 'none'),
        masterCount: fc.integer({ min: 1, max: 5 }),
        leaseSeconds: fc.integer({ min: 15, max: 600 }),
        reconcilePorts: fc.boolean(),
        extraPorts: fc.array(fc.record({ name: label, port, protocol }), { maxLength: 2 }),
      }),
      service: some({
        port,
        securePort: port,
        nodePort: fc.oneof(fc.constant(0), port),
        extraPorts: fc.array(servicePort, { maxLength: 2 }),
        reconcile: fc.boolean(),
      }),
      systemNamespaces: fc.uniqueArray(fc.oneof(word, label), { maxLength: 4 }),
      intervalSeconds: some({
        'system-namespaces': everyTimes(SCHEDULE_SECONDS['system-namespaces']),
        'kubernetes-service': everyTimes(SCHEDULE_SECONDS['kubernetes-service']),
        'cluster-ip-repair': everyTimes(SCHEDULE_SECONDS['cluster-ip-repair']),
      }),
      repair: some({ ipAddresses: fc.boolean() }),
      maxEventsPerPass: fc.integer({ min: 0, max: 100 }),
      callerKeys: fc.constantFrom([], ['a'.repeat(64)]),
    }).map((more) => ({ ...needed, ...more })),
  );

test('a valid spec file matches the schema, and writtenSpec turns its spec back into a file that is read as the same spec', () => {
  let valid = 0;
  fc.assert(
    fc.property(files, (file) => {
      const result = validateClusterSpec(file);
      fc.pre(!('faults' in result));
      valid += 1;
      const { apiServers: _servers, serviceClusterIPRange: _ranges, serviceNodePortRange: _ports, ...kept } = file;
      expect(result.spec).toMatchObject(kept);
      expect(schemaFaults(schema, file)).toEqual([]);
      const written = writtenSpec(result.spec);
      expect(parseClusterSpec(stringify(written, { version: '1.1' }))).toEqual({ spec: result.spec });
      expect(parseClusterSpec(JSON.stringify(written))).toEqual({ spec: result.spec });
    }),
    { numRuns: runs(30) },
  );
  expect(valid).toBe(runs(30));
});

test('the description of faults has a line for each fault, and below it a line with the fix', () => {
  const faults = [fault(['mode'], 'is required', 'write one of observe, enforce'), fault([], 'is a list')];
  expect(describeFaults('cluster.yml', faults)).toBe(
    ['cluster.yml: 2 faults', '  mode: is required', '    write one of observe, enforce', '  is a list'].join('\n'),
  );
});

const first = aServer('10.9.8.7');
const second = aServer('10.9.8.8');
const host = aHost('api.example.com');
const extraPort = { name: 'konnectivity', protocol: 'TCP', port: 8132 } as const;
const { endpoints } = aClusterSpec();

const ranges: [string, string] = ['10.0.0.0/16', 'fd00:10::/112'];
const [file, ssm] = [{ kubeconfig: { file: 'a' } }, { kubeconfig: { ssm: '/a' } }];
const namespaces = (...systemNamespaces: string[]) => ({ systemNamespaces });
test.each<[string, Partial<ClusterSpec>, Partial<ClusterSpec>, string[]]>([
  ['nothing if they are equal', {}, {}, []],
  ['a value', { mode: 'observe' }, { mode: 'enforce' }, ['mode: observe -> enforce']],
  ['a nested field', {}, { endpoints: { ...endpoints, leaseSeconds: 30 } }, ['endpoints.leaseSeconds: 15 -> 30']],
  ['ranges as in a file', {}, { serviceClusterIPRanges: ranges }, [`serviceClusterIPRange: 10.0.0.0/24 -> ${ranges}`]],
  ['the store of a kubeconfig', file, ssm, ['kubeconfig.ssm: <none> -> /a', 'kubeconfig.file: a -> <none>']],
  ['both whole lists of names', namespaces('a'), namespaces('a', 'b'), ['systemNamespaces: [a] -> [a, b]']],
  [
    'API servers by their addresses, whatever their positions in the list',
    { apiServers: [first, second] },
    { apiServers: [host, aServer('10.9.8.8', { path: '/livez' })] },
    [
      'apiServers[api.example.com]: <none> -> {host: api.example.com, kind: shared, probe: {path: /readyz, authenticate: false}}',
      'apiServers[10.9.8.8].probe.path: /readyz -> /livez',
      'apiServers[10.9.8.7]: {address: 10.9.8.7, kind: server, probe: {path: /readyz, authenticate: false}} -> <none>',
    ],
  ],
  [
    'only the order if the same API servers are in another order',
    { apiServers: [first, second] },
    { apiServers: [second, first] },
    ['apiServers (order): [10.9.8.7, 10.9.8.8] -> [10.9.8.8, 10.9.8.7]'],
  ],
  [
    'an extra port by its name',
    {},
    { endpoints: { ...endpoints, extraPorts: [extraPort] } },
    ['endpoints.extraPorts[konnectivity]: <none> -> {name: konnectivity, protocol: TCP, port: 8132}'],
  ],
])('the difference of two specs shows %s', (_, before, after, expected) => {
  expect(specDifference(aClusterSpec(before), aClusterSpec(after)).map(differenceLine)).toEqual(expected);
});

const example = readInRepository('cluster.example.yml');

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
  const open = [
    ['', schema] as const,
    ...fields.map(([path, field]) => [path, (field['items'] ?? field) as JsonSchema] as const),
  ]
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
  [aSpec({ apiServers: [{ host: 'a.b', kind: 'server' }] }), '/apiServers/0/kind: must be equal to constant'],
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
