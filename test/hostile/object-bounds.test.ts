import { describe, expect, test } from '@jest/globals';
import { parseClusterSpec, validateClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { type Kind, RESOURCES } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { CLUSTERS, clusterContent, readCluster } from '../../lib/table/clusters.ts';
import { BOUNDS, LONGEST_SPEC_TEXT, LONGEST_TEXT, MOST_HOSTS } from '../../lib/util/bounds.ts';
import { minimal } from '../cli/spec/spec-support.ts';
import { portAnswering, protobuf, reply } from '../kubernetes/port-answering.ts';
import { envelope, message } from '../kubernetes/protobuf-writer.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { memoryTable } from '../support/memory-table.ts';

const ENTRIES = 'node ports and cluster IPs of Services';
const KINDS = Object.keys(RESOURCES) as Kind[];
const BOUNDED = ['Endpoints', 'EndpointSlice', 'ServiceCIDR'] as const;

function read(kind: Kind, object: object) {
  const namespace = RESOURCES[kind].namespaced ? { namespace: 'default' } : {};
  return portAnswering(reply(200, object)).port.get({ kind, ...namespace, name: 'kubernetes' });
}

const addresses = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({ ip: `10.1.${(from + index) >> 8}.${(from + index) & 255}` }));
const ports = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }));

const tooLarge = (message: string) => ({ code: 'ReplyTooLarge', message: expect.stringContaining(message) });

const names = Array.from({ length: 300 }, (_, index) => `n${index}`);

describe.each(BOUNDED)('an object of kind %s', (kind) => {
  test.each(Object.entries<number>(BOUNDS[kind]))(
    'the field %s can have %i entries, and the error for one entry more contains the field, the number and the limit',
    async (field, most) => {
      await expect(read(kind, objectOf(kind, field, most))).resolves.toMatchObject({ kind });
      const error = tooLarge(`${most + 1} entries in ${field} of ${kind} (the limit is ${most})`);
      await expect(read(kind, objectOf(kind, field, most + 1))).rejects.toMatchObject(error);
    },
  );

  test('an object with a long label is refused, and an object with long annotations is accepted, because no pass reads annotations', async () => {
    const long = 'x'.repeat(LONGEST_TEXT + 1);
    const object = objectOf(kind, 'spec', 0);
    const metadata = Object(object['metadata']);
    await expect(read(kind, { ...object, metadata: { ...metadata, annotations: { long } } })).resolves.toBeDefined();
    const error = tooLarge(`more than ${LONGEST_TEXT} characters in metadata.labels.long of ${kind}`);
    await expect(read(kind, { ...object, metadata: { ...metadata, labels: { long } } })).rejects.toMatchObject(error);
  });
});

test.each(KINDS)('an object of kind %s is read even with very many fields that no pass uses', async (kind) => {
  const metadata = {
    labels: Object.fromEntries(names.map((name) => [name, ''])),
    annotations: Object.fromEntries(names.map((name) => [name, 'x'.repeat(LONGEST_TEXT)])),
    finalizers: names,
    ownerReferences: names.map((uid) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: uid.repeat(500), uid })),
    managedFields: names.map((manager) => ({ manager })),
  };
  const object = objectOf(kind, 'status.conditions', 300);
  const whole = { ...object, metadata: { ...Object(object['metadata']), ...metadata } };
  await expect(read(kind, whole)).resolves.toEqual(whole);
});

test.each(['EndpointSlice', 'ServiceCIDR'] as const)('a list of kind %s above its limit is refused', async (kind) => {
  const list = (length: number) => ({
    kind: `${kind}List`,
    apiVersion: RESOURCES[kind].apiVersion,
    metadata: { resourceVersion: '7' },
    items: Array.from({ length }, (_, index) => ({ metadata: { name: `n${index}` }, spec: { cidrs: [] } })),
  });
  const most = BOUNDS['each list'][kind];
  await expect(portAnswering(reply(200, list(most))).port.list(kind, 'default')).resolves.toHaveLength(most);
  const error = tooLarge(`${most + 1} entries in items of a list of ${kind} (the limit is ${most})`);
  await expect(portAnswering(reply(200, list(most + 1))).port.list(kind, 'default')).rejects.toMatchObject(error);
});

/** Returns a list in protobuf that contains one object many times. */
const listing = (apiVersion: string, kind: string, item: Buffer, items: number) => {
  const meta = message([1, message([2, '9'])]);
  const body = envelope(apiVersion, `${kind}List`, Buffer.concat([meta, Buffer.alloc(items * item.length, item)]));
  return portAnswering(protobuf(body)).port;
};
const services = (ports: number, items: number) => {
  const spec = message(...Array.from({ length: ports }, () => [1, message([5, 1])] as const));
  const service = message([2, message([1, message([1, 's'], [3, 'default'])], [2, spec])]);
  return listAllServices(listing('v1', 'Service', service, items));
};
const ipAddresses = async (items: number) => {
  const address = message([2, message([1, message([1, '10.0.0.1'])])]);
  const port = listing('networking.k8s.io/v1', 'IPAddress', address, items);
  return (await Array.fromAsync(port.ipAddresses())).flat();
};
const most = BOUNDS['each list'];

test.each([
  ['Services', (more: number) => services(0, most.Service + more), most.Service],
  ['node ports of Services', (more: number) => services(25, most[ENTRIES] / 25 + more), most[ENTRIES]],
  ['IPAddresses', (more: number) => ipAddresses(most.IPAddress + more), most.IPAddress],
])('a streamed list with one more than the allowed number of %s is refused', async (_, listed, limit) => {
  await expect(listed(0)).resolves.not.toHaveLength(0);
  await expect(listed(1)).rejects.toMatchObject(tooLarge(`more than ${limit} `));
});

test('Endpoints that would have too many addresses after repacking are refused, although each of their lists is short', async () => {
  const shared = { addresses: addresses(900), ports: ports(50) };
  const own = ports(50).map((port, index) => ({ addresses: addresses(1, 2_000 + index), ports: [port] }));
  const error = tooLarge('45050 entries in subsets[].addresses of Endpoints, repacked, (the limit is 10000)');
  const endpoints = { ...objectOf('Endpoints', 'subsets', 0), subsets: [shared, ...own] };
  await expect(read('Endpoints', endpoints)).rejects.toMatchObject(error);
});

/** Returns an object of the kind, as in the JSON of an API server, with this number of entries in a field of `BOUNDS`. */
function objectOf(kind: Kind, field: string, entries: number): Record<string, unknown> {
  const { apiVersion, namespaced } = RESOURCES[kind];
  const metadata = { name: 'kubernetes', ...(namespaced && { namespace: 'default' }), resourceVersion: '7', uid: 'u' };
  const isText = field === 'spec.cidrs' || field === 'endpoints[].addresses';
  const content: unknown = Array.from({ length: entries }, (_, index) => {
    const name = `n${index}`;
    return isText ? name : { name, ip: name, addresses: [] };
  });
  const value = field
    .replaceAll('[]', '.[]')
    .split('.')
    .reduceRight<unknown>((inner, step) => (step === '[]' ? [inner] : { [step]: inner }), content);
  const object = value as Record<string, object>;
  const spec = { ...(kind === 'ServiceCIDR' && { cidrs: [] }), ...object['spec'] };
  return { kind, apiVersion, ...object, spec, metadata: { ...metadata, ...object['metadata'] } };
}

const ATTACK = 2_000;

function specWith(field: string, value: unknown): object {
  const [outer = '', inner] = field.split('.');
  return { ...minimal, [outer]: inner === undefined ? value : { [inner]: value } };
}

test.each(Object.entries<number>(BOUNDS['cluster spec']))(
  'a cluster spec with too many entries in %s is refused in a file and in the table, and the error contains the field, the number and the limit',
  async (field, most) => {
    const entries = Array.from({ length: ATTACK }, () => ({}));
    const result = validateClusterSpec(specWith(field, entries));
    const fault = { path: field, message: `has ${ATTACK} entries`, fix: `write at most ${most}` };
    expect(result).toMatchObject({ faults: [fault] });

    const table = memoryTable();
    const spec = { ...aClusterSpec({ name: 'a' }), ...specWith(field, entries) };
    const content = clusterContent({ spec: aClusterSpec({ name: 'a' }), generation: 1, rangesGeneration: 1 });
    await table.put({ ...content, cluster: CLUSTERS, key: 'a', value: { ...Object(content.value), spec } }, undefined);
    const why = `${ATTACK} entries in ${field} of its spec, and at most ${most} are accepted`;
    const error = { code: 'Corrupt', message: expect.stringContaining(why) };
    await expect(readCluster(table, 'a')).rejects.toMatchObject(error);
  },
);

test('a cluster spec is refused if the addresses of its host names might not fit into one EndpointSlice', () => {
  const apiServers = Array.from({ length: MOST_HOSTS + 1 }, (_, index) => ({ host: `api-${index}.example.com` }));
  expect(validateClusterSpec({ ...minimal, apiServers: apiServers.slice(1) })).toHaveProperty('spec');
  const faults = [{ fix: 'write at most 25 of them' }];
  expect(validateClusterSpec({ ...minimal, apiServers })).toMatchObject({ faults });
});

test('a cluster spec that is too long is refused', () => {
  const faults = [{ message: expect.stringContaining(`at most ${LONGEST_SPEC_TEXT} are read`) }];
  expect(parseClusterSpec('a: {}\n'.repeat(LONGEST_SPEC_TEXT))).toMatchObject({ faults });
});
