import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { fromBits, union } from '../../lib/allocator/snapshot-bytes.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { readExchangeFile } from '../../lib/exchange/exchange-file.ts';
import {
  type RangeAllocation,
  rangeAllocationToJson,
  rangeAllocationToStorage,
} from '../../lib/exchange/range-allocation.ts';
import { rangeItems } from '../../lib/exchange/range-items.ts';
import { type Etcd, type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

jest.setTimeout(120_000);

interface ServiceReply {
  readonly message?: string;
  readonly spec: { readonly clusterIP: string; readonly ports: readonly { readonly nodePort?: number }[] };
}

interface Variant {
  readonly title: string;
  readonly key: string;
  readonly extraArgs: readonly string[];
  readonly refused: RegExp;
}

const PORTS = '30000-30015';

/**
 * Node ports are in a bitmap in every version. Cluster IPs are no more since 1.34: for them the API server is told to be a
 * 1.33 with the bitmap of the clusters that are to be moved.
 */
describe.each<Variant>([
  {
    title: 'the node ports of a kube-apiserver',
    key: 'servicenodeports',
    extraArgs: [`--service-node-port-range=${PORTS}`],
    refused: /provided port is already allocated/,
  },
  {
    title: 'the cluster IPs of a kube-apiserver that emulates 1.33',
    key: 'serviceips',
    extraArgs: ['--emulated-version=1.33', '--feature-gates=MultiCIDRServiceAllocator=false'],
    refused: /provided IP is already allocated/,
  },
])('Of $title', ({ key, extraArgs, refused }) => {
  let etcd: Etcd;
  let server: KubeApiserver;
  const path = `/registry/ranges/${key}`;
  const isPort = key === 'servicenodeports';

  beforeAll(async () => {
    etcd = await startEtcd();
    server = await startKubeApiserver({ etcd, serviceClusterIPRange: '10.0.0.0/28', extraArgs });
    // It is made beside the start, and takes an address of its own.
    await eventually(async () => {
      const { status } = await server.request('GET', '/api/v1/namespaces/default/services/kubernetes');
      expect(status).toBe(200);
    });
  });

  afterAll(async () => {
    await etcd?.stop();
  });

  /** Asks for that item, or for any. */
  async function create(name: string, item?: string): Promise<{ status: number; item: string; message: string }> {
    const port = { port: 80, ...(isPort && item !== undefined && { nodePort: Number(item) }) };
    const spec = {
      type: isPort ? 'NodePort' : 'ClusterIP',
      ports: [port],
      ...(!isPort && item !== undefined && { clusterIP: item }),
    };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec };
    const { status, body } = await server.request<ServiceReply>('POST', '/api/v1/namespaces/default/services', service);
    const given = isPort ? body.spec?.ports[0]?.nodePort : body.spec?.clusterIP;
    return { status, item: String(given), message: body.message ?? '' };
  }

  /** What is taken by Services, whoever made them. */
  async function taken(): Promise<string[]> {
    const { body } = await server.request<{ items: ServiceReply[] }>('GET', '/api/v1/services');
    const items = body.items.map(({ spec }) => (isPort ? spec.ports[0]?.nodePort : spec.clusterIP));
    return items
      .filter((item) => item !== undefined)
      .map(String)
      .sort();
  }

  async function stored(): Promise<{ bytes: Buffer; allocation: RangeAllocation; items: string[]; free: string[] }> {
    const bytes = await etcd.get(path);
    const file = readExchangeFile(bytes ?? new Uint8Array(0));
    if (file instanceof ExchangeError) throw file;
    if (bytes === undefined || file.kind !== 'RangeAllocation') throw new Error(`${path} is another object`);
    const range = rangeItems(file.allocation.range);
    if (range instanceof ExchangeError) throw range;
    const items = [...range.in(file.allocation.data)].sort();
    const all = [...range.in(fromBits(Array.from({ length: range.max }, (_, bit) => bit)))];
    return { bytes, allocation: file.allocation, items, free: all.filter((item) => !items.includes(item)) };
  }

  test('the stored object says what its Services have, and is encoded again to the byte', async () => {
    for (const name of ['one', 'two', 'three']) expect(await create(name)).toMatchObject({ status: 201 });
    const { bytes, allocation, items } = await stored();
    expect(items).toEqual(await taken());
    expect(Buffer.from(rangeAllocationToStorage(allocation))).toEqual(bytes);
  });

  test.each([
    { form: 'protobuf', encode: rangeAllocationToStorage },
    { form: 'JSON', encode: rangeAllocationToJson },
  ])(
    'what is put back as $form is heeded: one more is taken, the others are as they were',
    async ({ form, encode }) => {
      const { allocation, items, free } = await stored();
      const [imported = '', left = ''] = free;
      const bit = isPort ? Number(imported) - 30_000 : Number(imported.split('.').at(-1)) - 1;
      await etcd.put(path, encode({ ...allocation, data: union(allocation.data, fromBits([bit])) }));

      const name = form.toLowerCase();
      const refusal = { status: 422, message: expect.stringMatching(refused) };
      expect(await create(`${name}-imported`, imported)).toMatchObject(refusal);
      expect(await create(`${name}-left`, left)).toMatchObject({ status: 201, item: left });
      const next = await create(`${name}-next`);
      expect(next).toMatchObject({ status: 201 });
      expect((await stored()).items).toEqual([...items, imported, left, next.item].sort());
    },
  );
});
