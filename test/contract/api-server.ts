import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import type { Transport } from '../../lib/kubernetes/transport.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

const kindOf = (kind: string, name: string, namespaced: boolean, shortName?: string) => ({
  ...{ kind, name, namespaced, singularName: kind.toLowerCase() },
  ...(shortName !== undefined && { shortNames: [shortName] }),
});

/** The kinds that both API servers serve, by API version. */
const KINDS = {
  v1: [
    kindOf('Namespace', 'namespaces', false, 'ns'),
    kindOf('Service', 'services', true, 'svc'),
    kindOf('Endpoints', 'endpoints', true, 'ep'),
  ],
  'discovery.k8s.io/v1': [kindOf('EndpointSlice', 'endpointslices', true)],
  'events.k8s.io/v1': [kindOf('Event', 'events', true, 'ev')],
  'networking.k8s.io/v1': [kindOf('ServiceCIDR', 'servicecidrs', false)],
};
const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update'];

interface Table {
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: object }[];
}

/** Defines tests of kubectl's requests other than those for objects: discovery, OpenAPI and tables. */
export function apiServerContract(name: string, connect: () => Promise<Transport>): void {
  describe(`requests of kubectl to ${name}`, () => {
    const namespace = `kubectl-${randomUUID().slice(0, 8)}`;
    let transport: Transport;

    const call = async (method: 'GET' | 'POST' | 'PATCH' | 'PUT', path: string, headers = {}, content?: object) => {
      const body = content === undefined ? {} : { body: JSON.stringify(content) };
      const request = { method, path, headers: { 'content-type': 'application/json', ...headers }, ...body };
      const reply = await transport(request, new AbortController().signal);
      const bytes = await readWhole(reply.body, 'the test', new BytesInFlight());
      return { status: reply.status, body: JSON.parse(new TextDecoder().decode(bytes)) };
    };
    const create = (kind: keyof typeof COLLECTIONS, content: object) =>
      call('POST', COLLECTIONS[kind], {}, content).then(({ status }) => expect(status).toBe(201));
    const COLLECTIONS = {
      Namespace: '/api/v1/namespaces',
      Service: `/api/v1/namespaces/${namespace}/services`,
      Endpoints: `/api/v1/namespaces/${namespace}/endpoints`,
    };
    const tableOf = async (path: string): Promise<Table> => (await call('GET', path, { accept: TABLE })).body;

    beforeAll(async () => {
      transport = await connect();
      await create('Namespace', { metadata: { name: namespace } });
    });

    test.each(Object.entries(KINDS))('the API server lists the resources of %s', async (apiVersion, kinds) => {
      const { body } = await call('GET', apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`);
      expect(body).toMatchObject({ kind: 'APIResourceList', groupVersion: apiVersion });
      for (const each of kinds) {
        const listed = body.resources.find((resource: { name: string }) => resource.name === each.name);
        expect(listed).toMatchObject({ ...each, verbs: expect.arrayContaining(VERBS) });
      }
    });

    test('the API server lists its API groups', async () => {
      expect((await call('GET', '/api')).body).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
      const { body } = await call('GET', '/apis');
      const groups = body.groups.map((group: { name: string }) => group.name);
      expect(body.kind).toBe('APIGroupList');
      for (const apiVersion of Object.keys(KINDS)) {
        if (apiVersion !== 'v1') expect(groups).toContain(apiVersion.split('/')[0]);
      }
    });

    test('the OpenAPI document states that a PATCH accepts fieldValidation', async () => {
      const { body } = await call('GET', '/openapi/v3');
      const document = (await call('GET', body.paths['api/v1'].serverRelativeURL)).body;
      const { patch } = document.paths[`/api/v1/namespaces/{namespace}/services/{name}`];
      expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: '', version: 'v1', kind: 'Service' });
      expect(patch.parameters).toContainEqual(expect.objectContaining({ name: 'fieldValidation', in: 'query' }));
    });

    const ip = (address: string) => ({ addresses: [{ ip: address }], ports: [{ name: 'https', port: 6443 }] });
    test.each<[keyof typeof COLLECTIONS, string, object, unknown[]]>([
      [
        'Service',
        'node-ports',
        { spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30_077 }] } },
        ['node-ports', 'NodePort', expect.stringMatching(/^10\./), '<none>', '80:30077/TCP', AGE],
      ],
      ['Endpoints', 'one', { subsets: [ip('10.9.8.7')] }, ['one', '10.9.8.7:6443', AGE]],
    ])('the API server returns the kubectl columns of %s "%s"', async (kind, objectName, fields, cells) => {
      await create(kind, { metadata: { name: objectName, namespace }, ...fields });
      const { columnDefinitions, rows } = await tableOf(`${COLLECTIONS[kind]}/${objectName}`);
      const object = expect.objectContaining({ kind: 'PartialObjectMetadata', metadata: expect.anything() });
      expect(rows).toEqual([{ cells: expect.anything(), object }]);
      // The other columns are those of "kubectl get -o wide".
      expect(rows[0]?.cells.filter((_, index) => columnDefinitions[index]?.priority === 0)).toEqual(cells);
    });

    test('the API server applies a field selector for the name of an object', async () => {
      const { rows } = await tableOf(`/api/v1/namespaces?fieldSelector=metadata.name%3D${namespace}`);
      expect(rows.map(({ cells }) => cells[0])).toEqual([namespace]);
    });

    test('an update cannot change the name or namespace of a Service; if an update omits the namespace, the address and the node port, the Service keeps them', async () => {
      const metadata = { name: 'replaced' };
      const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_078 }] };
      await create('Service', { metadata, spec });
      for (const other of [{ name: 'another' }, { ...metadata, namespace: 'another' }]) {
        const sent = { metadata: other, spec };
        expect(await call('PUT', `${COLLECTIONS.Service}/replaced`, {}, sent)).toMatchObject({ status: 400 });
      }
      for (let time = 0; time < 2; time++) {
        const sent = { metadata, spec: { type: 'NodePort', ports: [{ port: 80 }] } };
        const kept = { clusterIP: expect.stringMatching(/^10\./), ports: [{ nodePort: 30_078 }] };
        const body = { metadata: { namespace }, spec: kept };
        expect(await call('PUT', `${COLLECTIONS.Service}/replaced`, {}, sent)).toMatchObject({ status: 200, body });
      }
    });

    test('a strategic merge patch merges the ports of a Service by their numbers', async () => {
      const spec = { ports: [80, 81].map((port) => ({ name: `port-${port}`, port })) };
      await create('Service', { metadata: { name: 'patched' }, spec });
      const ports = [
        { name: 'port-82', port: 82 },
        { port: 80, targetPort: 8080 },
        { $patch: 'delete', port: 81 },
      ];
      const patch = { spec: { '$setElementOrder/ports': [{ port: 82 }, { port: 80 }], ports } };
      const headers = { 'content-type': 'application/strategic-merge-patch+json' };
      const { status, body } = await call('PATCH', `${COLLECTIONS.Service}/patched`, headers, patch);
      expect(status).toBe(200);
      expect(body.spec.ports).toEqual([
        { name: 'port-82', protocol: 'TCP', port: 82, targetPort: 82 },
        { name: 'port-80', protocol: 'TCP', port: 80, targetPort: 8080 },
      ]);
    });
  });
}

const AGE = expect.stringMatching(/^(\d+[smhdy])+$/);
