import { afterAll, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { RANGE_KEYS, type RangeKey } from '../../lib/spec/spec-ranges.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange } from '../../lib/table/ranges.ts';
import { type ListeningStandIn, listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { apiServerContract } from '../contract/api-server.ts';
import { clusterPortContract } from '../contract/cluster-port.ts';
import { found } from '../support/found.ts';
import { addressesOf } from '../support/kbctl-ranges.ts';
import { memoryTable } from '../support/memory-table.ts';
import { itemsIn } from '../support/ranges.ts';
import { repairedAt } from '../support/run-records.ts';
import { IDENTITY, readyStandIn, transportTo } from '../support/stand-in.ts';

const connections = new ApiServerConnections();
let server: ListeningStandIn;

clusterPortContract('the stand-in API server over HTTP', async () => {
  server = await listen(await readyStandIn(), IDENTITY);
  const kubeconfig = kubeconfigOf('stand-in', server.url, IDENTITY);
  return connections.transport(await parseKubeconfig(kubeconfig, 'of the test'));
});
afterAll(async () => {
  await connections.close();
  await server.close();
});

apiServerContract('the stand-in API server', async () => transportTo(await readyStandIn()));

const BAD_NAME = '{"metadata":{"name":"Bad Name"}}';

const standIn = readyStandIn();

test.each([
  ['an unknown path is a 404', 'GET', '/apis/apps/v1/deployments', undefined, 404, 'page not found'],
  ['a body that is not JSON is a 400', 'POST', '/api/v1/namespaces', '{', 400, 'BadRequest'],
  ['a body that is not an object is a 400', 'POST', '/api/v1/namespaces', '7', 400, 'BadRequest'],
  ['a body without metadata is a 400', 'POST', '/api/v1/namespaces', '{"metadata":null}', 400, 'BadRequest'],
  ['a deletion with a body without JSON is a 400', 'DELETE', '/api/v1/namespaces/default', '{', 400, 'BadRequest'],
  ['an unsupported method is a 405', 'PUT', '/api/v1/namespaces', '{}', 405, 'MethodNotAllowed'],
  ['a watch is a 400', 'GET', '/api/v1/services?watch=true', undefined, 400, 'no watch'],
  ['a request with watch=false is a list', 'GET', '/api/v1/services?watch=false', undefined, 200, 'ServiceList'],
  ['a dry run is a 400', 'POST', '/api/v1/namespaces?dryRun=All', '{}', 400, 'no dry run'],
  ['a patch of another kind is a 415', 'PATCH', '/api/v1/namespaces/default', '[]', 415, 'UnsupportedMediaType'],
  ['a namespace with a bad name is a 422', 'POST', '/api/v1/namespaces', BAD_NAME, 422, 'RFC 1123'],
] as const)('the stand-in gives the documented reply: %s', async (_title, method, path, body, status, text) => {
  const headers = { 'content-type': 'application/json' };
  const reply = await (await standIn).handle({ method, path, headers, ...(body !== undefined && { body }) });
  expect(reply).toMatchObject({ status, body: expect.stringContaining(text) });
});

const SERVICES = '/api/v1/namespaces/default/services';

interface Reply {
  readonly status: number;
  readonly message?: string;
  readonly spec?: { readonly clusterIP?: string; readonly ports?: readonly object[] };
}

/** Returns the status of the reply with the fields of its object, except its own status. */
async function call(server: StandInApiServer, method: string, path: string, body?: object): Promise<Reply> {
  const headers = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const reply = await server.handle({ method, path, headers, ...text });
  return { ...JSON.parse(reply.body), status: reply.status };
}

const create = (server: StandInApiServer, name: string, spec: object = {}) =>
  call(server, 'POST', SERVICES, { metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
const remove = (server: StandInApiServer, name: string) => call(server, 'DELETE', `${SERVICES}/${name}`);

async function takenIn(table: KeyValueTable, key: RangeKey): Promise<readonly (string | number)[]> {
  return itemsIn(found(await readRange(table, 'main', key)).stored);
}

test('kubectl get prints a Service even if its externalIPs are no list, which a real API server would refuse', async () => {
  const server = await readyStandIn();
  await create(server, 'web', { externalIPs: '192.0.2.9' });
  const headers = { accept: 'application/json;as=Table' };
  const reply = await server.handle({ method: 'GET', path: SERVICES, headers });
  expect(reply.body).toContain('"192.0.2.9"');
});

describe('Services of an API server that allocates through the table', () => {
  test('in a range with a prefix of 29 bits, a seventh Service is refused until another Service is deleted', async () => {
    const server = await readyStandIn({ cidr: '10.0.0.0/29' });
    for (let index = 0; index < 6; index++) expect(await create(server, `s${index}`)).toMatchObject({ status: 201 });

    expect(await create(server, 'one-too-many')).toMatchObject({
      status: 500,
      message: 'Internal error occurred: failed to allocate a serviceIP for Service "one-too-many": range is full',
    });

    const { spec } = await call(server, 'GET', `${SERVICES}/s3`);
    expect(await remove(server, 's3')).toMatchObject({ status: 200 });
    expect(await create(server, 'fits')).toMatchObject({ status: 201, spec: { clusterIP: spec?.clusterIP } });
  });

  test('if no repair pass has run for three intervals, Services get no addresses, but the deletion of a Service still releases its ports', async () => {
    const table = memoryTable();
    const server = await readyStandIn({ table });
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] };
    expect(await create(server, 'before', spec)).toMatchObject({ status: 201 });
    await repairedAt(table, Date.now() - 10 * 60_000);
    for (const clusterIP of [undefined, '10.0.0.9']) {
      const reply = await create(server, 'late', { clusterIP });
      expect([reply.status, reply.message]).toEqual([500, expect.stringMatching(/no pass of cluster-ip-repair has/)]);
    }
    expect(await remove(server, 'before')).toMatchObject({ status: 200 });
    expect(await takenIn(table, RANGE_KEYS.nodePorts)).toEqual([]);
    await repairedAt(table, Date.now());
    expect(await create(server, 'late', spec)).toMatchObject({ status: 201 });
  });

  test.each([
    ['is allocated to its owner', 'owner', 'billing', 201],
    ['is not allocated to another owner', 'owner', 'sales', 422],
    ['is not allocated to a Service without the label of an owner', 'owner', undefined, 422],
    ['is allocated to any Service if the hold allows every Service to claim it', 'any', undefined, 201],
  ] as const)('a held item %s', async (_, takenUpBy, label, status) => {
    const table = memoryTable();
    const server = await readyStandIn({ table });
    const clusterIP = '10.0.0.9';
    const hold = { owner: 'billing', takenUpBy, untilMs: Date.now() + 60_000 };
    await (await addressesOf(table, 'main')).allocate([clusterIP], { hold });
    const labels = label && { 'kube-bootstrap-controller/hold-owner': label };
    const service = { metadata: { name: 'web', labels }, spec: { clusterIP, ports: [{ port: 80 }] } };
    expect(await call(server, 'POST', SERVICES, service)).toMatchObject({ status });
  });

  test('if the stand-in API server refuses a Service, it releases the addresses and ports of that Service', async () => {
    const table = memoryTable();
    const server = await readyStandIn({ table });
    const ports = [
      { name: 'a', port: 80 },
      { name: 'b', port: 81, nodePort: 1 },
    ];
    expect(await create(server, 'refused', { type: 'NodePort', ports })).toMatchObject({ status: 422 });
    expect(await takenIn(table, RANGE_KEYS.primary)).toEqual([]);
    expect(await takenIn(table, RANGE_KEYS.nodePorts)).toEqual([]);
  });

  test('the deletion of a namespace deletes its Services, and releases their addresses', async () => {
    const server = await readyStandIn();
    const ofShop = '/api/v1/namespaces/shop';
    const service = { metadata: { name: 'web' }, spec: { clusterIP: '10.0.0.77', ports: [{ port: 80 }] } };
    await call(server, 'POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    expect(await call(server, 'POST', `${ofShop}/services`, service)).toMatchObject({ status: 201 });
    const { body } = await server.handle({ method: 'DELETE', path: ofShop, headers: {} });
    expect(JSON.parse(body)).toMatchObject({ status: { phase: 'Terminating' } });
    expect(await call(server, 'GET', ofShop)).toMatchObject({ status: 404 });
    expect(await call(server, 'GET', '/api/v1/services')).toMatchObject({ items: [] });
    expect(await call(server, 'POST', SERVICES, service)).toMatchObject({ status: 201 });
  });

  test('if the type of a Service changes to ClusterIP, the node ports of the Service are cleared and released', async () => {
    const server = await readyStandIn();
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] };
    await create(server, 'np', spec);
    const changed = await call(server, 'PATCH', `${SERVICES}/np`, { spec: { type: 'ClusterIP' } });
    expect(changed.spec?.ports).toEqual([{ protocol: 'TCP', targetPort: 80, port: 80 }]);
    expect(await create(server, 'next', spec)).toMatchObject({ status: 201 });
  });

  test('the causes of a refusal contain the field and its fault, because kubectl prints only the causes', async () => {
    const server = await readyStandIn();
    await create(server, 'np');
    const patch = { spec: { ports: [{ port: 80, nodePort: 30_081 }] } };
    const message = "Forbidden: may not be used when `type` is 'ClusterIP'";
    const causes = [{ reason: 'FieldValueForbidden', field: 'spec.ports[0].nodePort', message }];
    expect(await call(server, 'PATCH', `${SERVICES}/np`, patch)).toMatchObject({
      status: 422,
      details: { name: 'np', kind: 'Service', causes },
    });
  });
});
