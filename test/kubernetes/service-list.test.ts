import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatAddress, parseAddress } from '../../lib/allocator/ip-address.ts';
import { isUsableIn, parseCidr } from '../../lib/allocator/network.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import type { ClusterPort } from '../../lib/kubernetes/cluster-port.ts';
import { listAllServices } from '../../lib/kubernetes/item-readers.ts';
import { servedAddresses } from '../../lib/kubernetes/service-cidrs.ts';
import type { OpenReply } from '../../lib/kubernetes/transport.ts';
import { failed, portAnswering, reply } from './port-answering.ts';
import { serviceList, status } from './protobuf-writer.ts';

const CREATED_AT_MS = Date.parse('2026-01-02T03:04:05Z');
const PROTOBUF = 'application/vnd.kubernetes.protobuf';

function claim(name: string): ServiceClaim {
  return {
    namespace: 'default',
    name,
    uid: `u-${name}`,
    resourceVersion: '5',
    type: 'NodePort',
    clusterIP: '10.0.0.7',
    clusterIPs: ['10.0.0.7', 'fd00::7'],
    ports: [{ protocol: 'UDP', nodePort: 30_007 }],
    healthCheckNodePort: 0,
    createdAtMs: CREATED_AT_MS,
  };
}

function protobuf(body: Buffer, code = 200): OpenReply {
  return { status: code, headers: { 'content-type': PROTOBUF }, body: [body] };
}

function jsonList(items: readonly unknown[], metadata: object = { resourceVersion: '9' }) {
  return reply(200, { apiVersion: 'v1', kind: 'ServiceList', metadata, items });
}

describe('the Services of a cluster', () => {
  test('the client requests Services in protobuf, in one list without a limit and without a resourceVersion', async () => {
    const { port, requests } = portAnswering(protobuf(serviceList([claim('a'), claim('b')])));
    await expect(listAllServices(port)).resolves.toEqual([claim('a'), claim('b')]);
    expect(requests.map(({ path }) => path)).toEqual(['/api/v1/services']);
    expect(requests[0]?.headers['accept']).toBe(`${PROTOBUF}, application/json`);
  });

  test('the client requests only Services that may have node ports with a field selector', async () => {
    const list = protobuf(serviceList([claim('a')]));
    const names = async (port: ClusterPort) => {
      const found: string[] = [];
      for await (const { name } of port.services('withNodePorts')) found.push(name);
      return found;
    };
    const { port, requests } = portAnswering(list);
    await expect(names(port)).resolves.toEqual(['a']);
    const path = '/api/v1/services?fieldSelector=spec.type%21%3DClusterIP%2Cspec.type%21%3DExternalName';
    expect(requests.map((request) => request.path)).toEqual([path]);
  });

  test('Services can be read from JSON without their optional fields', async () => {
    const { port } = portAnswering(
      jsonList([
        {
          metadata: {
            name: 'a',
            namespace: 'default',
            uid: 'u-a',
            resourceVersion: '5',
            creationTimestamp: '2026-01-02T03:04:05Z',
          },
          spec: {
            type: 'NodePort',
            clusterIP: '10.0.0.7',
            clusterIPs: ['10.0.0.7', 'fd00::7'],
            ports: [{ port: 80, protocol: 'UDP', nodePort: 30_007 }],
          },
        },
        { metadata: { name: 'bare', namespace: 'default' }, spec: { ports: null } },
      ]),
    );
    await expect(listAllServices(port)).resolves.toEqual([
      claim('a'),
      {
        namespace: 'default',
        name: 'bare',
        uid: '',
        resourceVersion: '',
        type: '',
        clusterIP: '',
        clusterIPs: [],
        ports: [],
        healthCheckNodePort: 0,
        createdAtMs: 0,
      },
    ]);
  });

  test('the owner whose holds a Service claims is read from JSON and from protobuf', async () => {
    const labels = { app: 'web', 'kube-bootstrap-controller/hold-owner': 'team-a' };
    const { port } = portAnswering(
      jsonList([
        { metadata: { name: 'a', namespace: 'default', labels }, spec: {} },
        { metadata: { name: 'b', namespace: 'default', labels: { app: 'x' } } },
      ]),
    );
    expect((await listAllServices(port)).map(({ holdOwner }) => holdOwner)).toEqual(['team-a', undefined]);
    const { port: other } = portAnswering(protobuf(serviceList([{ ...claim('a'), holdOwner: 'team-a' }, claim('b')])));
    await expect(listAllServices(other)).resolves.toEqual([{ ...claim('a'), holdOwner: 'team-a' }, claim('b')]);
  });

  test('the client requests Services as JSON if the server does not support protobuf', async () => {
    const { port, requests } = portAnswering(failed(406, 'NotAcceptable'), jsonList([]));
    await expect(listAllServices(port)).resolves.toEqual([]);
    expect(requests.map(({ headers }) => headers['accept'])).toEqual([
      `${PROTOBUF}, application/json`,
      'application/json',
    ]);
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

  test.each<[string, OpenReply, string, RegExp]>([
    [
      '403',
      protobuf(status(403, 'Forbidden', 'services is forbidden', 0), 403),
      'Forbidden',
      /services is forbidden.*Grant/,
    ],
    ['401', protobuf(status(401, 'Unauthorized', 'Unauthorized', 0), 401), 'Unauthorized', /kubeconfig/],
    ['429', protobuf(status(429, 'TooManyRequests', 'busy', 60), 429), 'Throttled', /busy/],
    ['500 without a Status', protobuf(Buffer.from('junk'), 500), 'Unavailable', /500/],
  ])('the protobuf error %s is reported like an error in JSON', async (_, answer, code, message) => {
    const { port } = portAnswering(answer);
    await expect(listAllServices(port)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('the client waits for retryAfterSeconds of a protobuf Status', async () => {
    const busy = protobuf(status(429, 'TooManyRequests', 'busy', 4), 429);
    const { port, waits } = portAnswering(busy, protobuf(serviceList([])));
    await expect(listAllServices(port)).resolves.toEqual([]);
    expect(waits).toEqual([4_000]);
  });

  test('an incomplete protobuf list throws an error, so that the caller discards it, and is not requested again', async () => {
    async function* breakingOff() {
      yield serviceList([claim('a'), claim('b')]).subarray(0, -20);
      throw Object.assign(new Error('other side closed'), { code: 'ECONNRESET' });
    }
    const { port, requests } = portAnswering({ ...protobuf(Buffer.alloc(0)), body: breakingOff() });
    const seen: string[] = [];
    const reading = async () => {
      for await (const { name } of port.services()) seen.push(name);
    };
    await expect(reading()).rejects.toMatchObject({ code: 'Unavailable' });
    expect(seen).toEqual(['a']);
    expect(requests).toHaveLength(1);
  });

  test.each<[string, OpenReply]>([
    ['protobuf that is cut off', protobuf(serviceList([claim('a')]).subarray(0, 60))],
    ['protobuf without a resourceVersion', protobuf(serviceList([], { resourceVersion: '' }))],
    ['a Service without a name', protobuf(serviceList([claim('')]))],
    ['JSON that calls itself protobuf', { ...jsonList([]), headers: { 'content-type': PROTOBUF } }],
    [
      'protobuf that calls itself JSON',
      { ...protobuf(serviceList([])), headers: { 'content-type': 'application/json' } },
    ],
    ['an item that is not an object', jsonList(['a'])],
    ['labels that are a list', jsonList([{ metadata: { name: 'a', namespace: 'b', labels: ['x'] } }])],
    [
      'the owner of holds as a number',
      jsonList([{ metadata: { name: 'a', namespace: 'b', labels: { 'kube-bootstrap-controller/hold-owner': 1 } } }]),
    ],
    ['a node port that is text', jsonList([item({ ports: [{ nodePort: '30007' }] })])],
    ['a node port that is not a whole number', jsonList([item({ healthCheckNodePort: 1.5 })])],
    ['clusterIPs that are not a list', jsonList([item({ clusterIPs: '10.0.0.7' })])],
    ['a clusterIP that is a number', jsonList([item({ clusterIP: 10 })])],
    ['ports that are texts', jsonList([item({ ports: ['80'] })])],
  ])('a list with %s is malformed, and is not read as a shorter list', async (_, answer) => {
    const { port } = portAnswering(answer);
    await expect(listAllServices(port)).rejects.toMatchObject({ code: 'MalformedReply' });
  });
});

function item(spec: object) {
  return { metadata: { name: 'a', namespace: 'default' }, spec };
}

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

test('an address is served if it is usable in any of the ServiceCIDRs, even if they overlap', () => {
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

test('every address is served if the ServiceCIDRs are unknown, and an invalid address is not served if they are known', () => {
  expect(servedAddresses(undefined)('10.0.0.1')).toBe(true);
  expect(servedAddresses([])('no address')).toBe(false);
});
