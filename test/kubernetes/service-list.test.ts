import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { isUsableIn, parseCidr } from '../../lib/allocator/network.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { servedAddresses } from '../../lib/kubernetes/service-cidrs.ts';
import { BOUNDS, LONGEST_TEXT } from '../../lib/util/bounds.ts';
import { service } from '../repair/services.ts';
import { runs } from '../support/properties.ts';
import { failed, PROTOBUF, portAnswering, protobuf, reply } from './port-answering.ts';
import { envelope, type Field, listOf, message, serviceList, status } from './protobuf-writer.ts';

const CREATED_AT_MS = Date.parse('2026-01-02T03:04:05Z');

function claim(name: string): ServiceClaim {
  const claims = { clusterIP: '10.0.0.7', clusterIPs: ['10.0.0.7', 'fd00::7'], createdAtMs: CREATED_AT_MS };
  return service(name, { type: 'NodePort', ...claims, ports: [{ protocol: 'UDP', nodePort: 30_007 }] });
}

const readServices = (bytes: Uint8Array, size?: number) =>
  listAllServices(portAnswering(protobuf(bytes, 200, size)).port);

function jsonList(items: readonly unknown[], metadata: object = { resourceVersion: '9' }) {
  return reply(200, { apiVersion: 'v1', kind: 'ServiceList', metadata, items });
}

test('the client requests all Services in protobuf with one request, without a limit or a resourceVersion', async () => {
  const { port, requests } = portAnswering(protobuf(serviceList([claim('a'), claim('b')])));
  await expect(listAllServices(port)).resolves.toEqual([claim('a'), claim('b')]);
  expect(requests.map(({ path }) => path)).toEqual(['/api/v1/services']);
  expect(requests[0]?.headers['accept']).toBe(`${PROTOBUF}, application/json`);
});

test('the absent fields of a Service are empty in protobuf and in JSON', async () => {
  const bare = message([1, message([1, 'a'], [3, 'b'])], [2, message([1, message([5, 30_000])])]);
  const metadata = { name: 'a', namespace: 'b' };
  const { port } = portAnswering(jsonList([{ metadata, spec: { ports: [{ nodePort: 30_000 }] } }]));
  const own = { namespace: 'b', name: 'a', ports: [{ protocol: '', nodePort: 30_000 }] };
  const empty = { uid: '', resourceVersion: '', type: '', clusterIP: '', clusterIPs: [] };
  const service = { ...own, ...empty, healthCheckNodePort: 0, createdAtMs: 0 };
  expect(await readServices(listOf(bare))).toEqual([service]);
  expect(await listAllServices(port)).toEqual([service]);
});

test('a list in protobuf is read although a Service has 300 labels, annotations, owners, finalizers and ports', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `n${index}`);
  const ofEach = (name: string): Field[] => [
    [11, message([1, name], [2, name])],
    [12, message([1, name], [2, name])],
    [13, message([1, 'ConfigMap'], [3, name.repeat(1_000)], [4, name])],
    [14, name],
  ];
  const ports = names.map((name): Field => [1, message([1, name], [3, 80])]);
  const spec = message(...ports, [3, '10.0.0.9'], [18, '10.0.0.9']);
  const odd = message([1, message([1, 'odd'], [3, 'default'], ...names.flatMap(ofEach))], [2, spec]);
  const good = names.slice(0, 200).map((name) => message([1, message([1, name], [3, 'default'])]));
  const services = await readServices(listOf(...good, odd));
  expect(services).toHaveLength(201);
  expect(services.at(-1)).toMatchObject({ name: 'odd', clusterIPs: ['10.0.0.9'], ports: [] });
});

test('a protobuf list of Services is rejected if a label exceeds the maximum length of a text', async () => {
  const services = (length: number) => readServices(serviceList([{ ...claim('a'), holdOwner: 'x'.repeat(length) }]));
  await expect(services(LONGEST_TEXT)).resolves.toHaveLength(1);
  await expect(services(LONGEST_TEXT + 1)).rejects.toMatchObject({ code: 'ReplyTooLarge' });
});

test('the client requests Services as JSON if the server does not support protobuf', async () => {
  const { port, requests } = portAnswering(failed(406, 'NotAcceptable'), jsonList([]));
  await expect(listAllServices(port)).resolves.toEqual([]);
  const accepted = requests.map(({ headers }) => headers['accept']);
  expect(accepted).toEqual([`${PROTOBUF}, application/json`, 'application/json']);
});

test('the client reads at most 8 MiB of JSON', async () => {
  const ofMiB = (size: number) => {
    const annotations = { text: 'x'.repeat(1024) };
    const item = { metadata: { name: 'a', namespace: 'default', annotations }, spec: {} };
    return portAnswering(jsonList(Array.from({ length: size * 1000 }, () => item))).port;
  };
  await expect(listAllServices(ofMiB(7))).resolves.toHaveLength(7_000);
  await expect(listAllServices(ofMiB(9))).rejects.toMatchObject({ code: 'ReplyTooLarge' });
});

test.each<[string, HttpReply, string, RegExp]>([
  ['403', protobuf(status(403, 'Forbidden', 'is forbidden'), 403), 'Forbidden', /is forbidden.*Grant/],
  ['400', protobuf(status(400, 'BadRequest', 'what is this'), 400), 'Rejected', /what is this/],
  ['429', protobuf(status(429, 'TooManyRequests', 'busy'), 429), 'Throttled', /busy/],
  ['500 without a Status', protobuf(Buffer.from('junk'), 500), 'Unavailable', /500/],
])('the protobuf error %s is reported like an error in JSON', async (_, answer, code, message) => {
  const { port } = portAnswering(answer);
  await expect(listAllServices(port)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
});

test('if a protobuf list breaks off, the client does not request the list again, but throws an error, so that the caller discards the list', async () => {
  async function* breakingOff() {
    yield serviceList([claim('a'), claim('b')]).subarray(0, -20);
    throw Object.assign(new Error('other side closed'), { code: 'ECONNRESET' });
  }
  const { port, requests } = portAnswering({ ...protobuf(Buffer.alloc(0)), body: breakingOff() });
  const seen: string[] = [];
  const reading = async () => {
    for await (const batch of port.services()) seen.push(...batch.map(({ name }) => name));
  };
  await expect(reading()).rejects.toMatchObject({ code: 'Unavailable' });
  expect(seen).toEqual(['a']);
  expect(requests).toHaveLength(1);
});

test('if a caller stops reading a protobuf list, the client closes the body of the reply, so that the connection is free', async () => {
  const body = Readable.from([serviceList([claim('a'), claim('b')]), Buffer.alloc(9)]);
  const { port } = portAnswering({ ...protobuf(Buffer.alloc(0)), body });
  for await (const [first] of port.services()) if (first?.name === 'a') break;
  expect(body.destroyed).toBe(true);
});

const AS_JSON = { 'content-type': 'application/json' };
const NUMBERED = { 'kube-bootstrap-controller/hold-owner': 1 };

test.each<[string, HttpReply]>([
  ['protobuf without a resourceVersion', protobuf(serviceList([], { resourceVersion: '' }))],
  ['protobuf with only a part of the list', protobuf(serviceList([claim('a')], { continueToken: 'b' }))],
  ['a Service without a name', protobuf(serviceList([claim('')]))],
  ['JSON with the content type of protobuf', { ...jsonList([]), headers: { 'content-type': PROTOBUF } }],
  ['protobuf with the content type of JSON', { ...protobuf(serviceList([])), headers: AS_JSON }],
  ['an item that is not an object', jsonList(['a'])],
  ['labels that are a list', jsonList([{ metadata: { name: 'a', namespace: 'b', labels: ['x'] } }])],
  ['the owner of holds as a number', jsonList([{ metadata: { name: 'a', namespace: 'b', labels: NUMBERED } }])],
  ['a node port that is a string', jsonList([item({ ports: [{ nodePort: '30007' }] })])],
  ['a node port that is not a whole number', jsonList([item({ healthCheckNodePort: 1.5 })])],
  ['clusterIPs that are not a list', jsonList([item({ clusterIPs: '10.0.0.7' })])],
  ['a clusterIP that is a number', jsonList([item({ clusterIP: 10 })])],
  ['ports that are strings', jsonList([item({ ports: ['80'] })])],
])('a reply with %s is malformed, and is not read as a shorter list', async (_, answer) => {
  const { port } = portAnswering(answer);
  await expect(listAllServices(port)).rejects.toMatchObject({ code: 'MalformedReply' });
});

function item(spec: object) {
  return { metadata: { name: 'a', namespace: 'default' }, spec };
}

const text = fc.string({ maxLength: 40, unit: 'grapheme' });
const name = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' });
const aNumber = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const ofAll = fc.record({
  namespace: name,
  name,
  uid: text,
  resourceVersion: text,
  type: text,
  clusterIP: text,
  clusterIPs: fc.array(text, { maxLength: 3 }),
  ports: fc.array(fc.record({ protocol: text, nodePort: aNumber.filter((port) => port !== 0) }), { maxLength: 4 }),
  healthCheckNodePort: fc.nat({ max: 65_535 }),
  createdAtMs: fc.nat({ max: 4_294_967_295 }).map((seconds) => seconds * 1000),
});
const aService = fc.oneof(
  ofAll,
  fc.tuple(ofAll, text).map(([fields, holdOwner]) => ({ ...fields, holdOwner })),
);

const malformed = { code: 'MalformedReply' };

test('a list of Services in protobuf is read back unchanged, however it is split into pieces, and its unknown fields are skipped', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aService, { maxLength: 5 }), fc.integer({ min: 1, max: 2_000 }), async (services, size) =>
      expect(await readServices(serviceList(services), size)).toEqual(services),
    ),
  );
});

test('the client reads the same Services from a JSON list as from the same list in protobuf', async () => {
  const inJson = ({ holdOwner, createdAtMs, name, namespace, uid, resourceVersion, ...spec }: ServiceClaim) => {
    const hold = holdOwner !== undefined && { 'kube-bootstrap-controller/hold-owner': holdOwner };
    const labels = { app: 'web', ...hold };
    const creationTimestamp = new Date(createdAtMs).toISOString();
    const ports = [{ port: 80 }, ...spec.ports];
    return { metadata: { name, namespace, uid, resourceVersion, creationTimestamp, labels }, spec: { ...spec, ports } };
  };
  await fc.assert(
    fc.asyncProperty(fc.array(aService, { maxLength: 5 }), async (services) => {
      const { port } = portAnswering(jsonList(services.map(inJson)));
      expect(await readServices(serviceList(services))).toEqual(await listAllServices(port));
    }),
  );
});

test('the invalid byte E9 in a text is read as U+FFFD, and not as the character "é", whose code is E9', async () => {
  const clusterIPs = ['\u00e9', 'e\u0301', 'é'.normalize('NFD')];
  const service = { ...claim('a'), clusterIP: 'é', clusterIPs, type: 'ClusterIP' };
  await expect(readServices(serviceList([service]))).resolves.toEqual([service]);
  const invalid = message([3, 'é'], [18, Buffer.of(0xe9)]);
  const item = message([1, message([1, 'a'], [3, 'b'])], [2, invalid]);
  const [read] = await readServices(listOf(item));
  expect(read).toMatchObject({ clusterIP: 'é', clusterIPs: ['\ufffd'] });
});

test('a list with random changed bytes, or only random bytes, is either refused as malformed or read as another list', async () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 5 });
  const changed = fc.tuple(fc.array(aService, { minLength: 1, maxLength: 3 }), changes).map(([services, bytes]) => {
    const list = serviceList(services);
    for (const [at, byte] of bytes) list[at % list.length] = byte;
    return list;
  });
  const random = fc.uint8Array({ maxLength: 300 });
  const inEnvelope = random.map((bytes) => envelope('v1', 'ServiceList', Buffer.from(bytes)));
  await fc.assert(
    fc.asyncProperty(fc.oneof(changed, random, inEnvelope), async (bytes) => {
      const outcome: unknown = await readServices(bytes).catch((error: unknown) => error);
      if (!Array.isArray(outcome)) expect(outcome).toMatchObject(malformed);
    }),
    { numRuns: runs(200) },
  );
});

/** Two fields of a later version with numbers of eight and four bytes. */
const FIXED = Buffer.concat([Buffer.of(0x79), Buffer.alloc(8, 0xff), Buffer.of(0x7d), Buffer.alloc(4, 0xff)]);

test.each([
  ['of another kind', envelope('v1', 'PodList', Buffer.alloc(0)), /no v1 ServiceList, but v1 PodList/],
  ['of another version', envelope('v2', 'ServiceList', Buffer.alloc(0)), /but v2 ServiceList/],
  ['without its magic bytes', serviceList([]).subarray(4), /does not start/],
  ['without bytes', Buffer.alloc(0), /cut off/],
  ['with text where a message belongs', envelope('v1', 'ServiceList', message([2, 5])), /wire type 0 instead of 2/],
  ['with a number of eleven bytes', envelope('v1', 'ServiceList', Buffer.alloc(11, 0xff)), /longer than 10 bytes/],
  ['with a field 0', envelope('v1', 'ServiceList', Buffer.of(2, 0)), /number 0/],
  ['with a group', envelope('v1', 'ServiceList', Buffer.of(0x2b)), /wire type 3/],
  ['with a length beyond its end', envelope('v1', 'ServiceList', Buffer.of(0x12, 0x7f)), /beyond the end of its list/],
  ['with a fixed-size number that is cut off', envelope('v1', 'ServiceList', FIXED.subarray(0, 5)), /./],
])('a list %s is malformed', async (_, bytes, problem) => {
  const message = expect.stringMatching(problem);
  await expect(readServices(bytes)).rejects.toMatchObject({ ...malformed, message });
});

test('fixed-size numbers in unknown fields of a list are skipped', async () => {
  const raw = Buffer.concat([FIXED, message([1, message([2, '9'])])]);
  await expect(readServices(envelope('v1', 'ServiceList', raw))).resolves.toEqual([]);
});

test.each([
  ['node ports', 'ports with a node port', message([1, message([5, 30_000])])],
  ['cluster IPs', 'clusterIPs', message([18, '::'])],
] as const)('a Service in protobuf is only read up to the limit of %s', async (field, name, entry) => {
  const most = BOUNDS.Service[field];
  const of = (entries: number, rest = Buffer.alloc(0)) => {
    const spec = Buffer.concat([...Array(entries).fill(entry), rest]);
    return readServices(listOf(message([1, message([1, 'a'], [3, 'b'])], [2, spec])));
  };
  await expect(of(most)).resolves.toHaveLength(1);
  const error = expect.stringContaining(`more than ${most} entries in ${name}`);
  const cutOff = FIXED.subarray(0, 5);
  await expect(of(most + 1, cutOff)).rejects.toMatchObject({ code: 'ReplyTooLarge', message: error });
});

test('a reply 400 whose protobuf Status has random bytes causes an error with the code Rejected or MalformedReply', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (junk) => {
      const { port } = portAnswering(protobuf(envelope('v1', 'Status', Buffer.from(junk)), 400));
      const code = expect.stringMatching(/^(Rejected|MalformedReply)$/);
      await expect(listAllServices(port)).rejects.toMatchObject({ code });
    }),
  );
});

const aNetwork = fc
  .record({ isIPv4: fc.boolean(), host: fc.nat(255), bits: fc.integer({ min: 0, max: 8 }) })
  .map(({ isIPv4, host, bits }) =>
    isIPv4 ? `10.0.0.${host}/${32 - bits}` : `fd00::${host.toString(16)}/${128 - bits}`,
  );
const anAddress = fc
  .record({ isIPv4: fc.boolean(), host: fc.nat(255) })
  .map(({ isIPv4, host }) =>
    isIPv4 ? `10.0.0.${host}` : formatAddress({ family: 'IPv6', value: (0xfdn << 120n) + BigInt(host) }),
  );

test('servedAddresses accepts exactly the addresses that are usable in at least one ServiceCIDR, even if ServiceCIDRs overlap', () => {
  fc.assert(
    fc.property(fc.array(aNetwork), fc.array(anAddress, { minLength: 1 }), (texts, addresses) => {
      const networks = texts.flatMap((text) => parseCidr(text) ?? []);
      const isServed = servedAddresses(networks.map((network) => ({ name: network.text, networks: [network] })));
      for (const text of addresses) {
        const address = parseAddress(text);
        expect(isServed(text)).toBe(address !== undefined && networks.some((network) => isUsableIn(network, address)));
      }
    }),
  );
});

test('if the ServiceCIDRs are unknown, servedAddresses accepts every address; if the ServiceCIDRs are known, servedAddresses rejects an invalid address', () => {
  expect(servedAddresses(undefined)('10.0.0.1')).toBe(true);
  expect(servedAddresses([])('no address')).toBe(false);
});
