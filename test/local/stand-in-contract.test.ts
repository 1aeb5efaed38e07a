import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { apiServerContract } from '../contract/api-server.ts';
import { clusterPortContract } from '../contract/cluster-port.ts';
import { IDENTITY, readyStandIn, transportTo } from '../support/stand-in.ts';

clusterPortContract({
  name: 'the stand-in API server in this process',
  setUp: async () => ({ transport: transportTo(await readyStandIn()), tearDown: async () => undefined }),
});

clusterPortContract({
  name: 'the stand-in API server over HTTP',
  setUp: async () => {
    const server = await listen(await readyStandIn(), IDENTITY);
    const connections = new ApiServerConnections();
    const transport = connections.transport(
      await parseKubeconfig(kubeconfigOf('stand-in', server.url, IDENTITY), 'of the test'),
    );
    const tearDown = async () => {
      await connections.close();
      await server.close();
    };
    return { transport, tearDown };
  },
});

apiServerContract('the stand-in API server', async () => transportTo(await readyStandIn()));

const BAD_NAME = '{"metadata":{"name":"Bad Name"}}';

describe('answers of the stand-in API server', () => {
  let standIn: StandInApiServer;
  beforeAll(async () => {
    standIn = await readyStandIn();
  });

  test.each([
    ['an unknown path is a 404', 'GET', '/apis/apps/v1/deployments', undefined, 404, 'page not found'],
    ['a body that is no JSON is a 400', 'POST', '/api/v1/namespaces', '{', 400, 'BadRequest'],
    ['a body that is no object is a 400', 'POST', '/api/v1/namespaces', '7', 400, 'BadRequest'],
    ['a body without metadata is a 400', 'POST', '/api/v1/namespaces', '{"metadata":null}', 400, 'BadRequest'],
    ['a deletion with a body that is no JSON is a 400', 'DELETE', '/api/v1/namespaces/default', '{', 400, 'BadRequest'],
    ['an unsupported method is a 405', 'PUT', '/api/v1/namespaces', '{}', 405, 'MethodNotAllowed'],
    ['a watch is a 400', 'GET', '/api/v1/services?watch=true', undefined, 400, 'no watch'],
    ['a request with watch=false is a list', 'GET', '/api/v1/services?watch=false', undefined, 200, 'ServiceList'],
    ['a dry run is a 400', 'POST', '/api/v1/namespaces?dryRun=All', '{}', 400, 'no dry run'],
    ['a patch of another kind is a 415', 'PATCH', '/api/v1/namespaces/default', '[]', 415, 'UnsupportedMediaType'],
    ['a namespace with a bad name is a 422', 'POST', '/api/v1/namespaces', BAD_NAME, 422, 'RFC 1123'],
  ] as const)('the stand-in API server has the rule that %s', async (_title, method, path, body, status, text) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await standIn.handle({ method, path, headers, ...(body !== undefined && { body }) });
    expect(reply).toMatchObject({ status, body: expect.stringContaining(text) });
  });
});

describe('features of the stand-in API server for kubectl', () => {
  const services = '/api/v1/namespaces/default/services';
  let standIn: StandInApiServer;
  beforeEach(async () => {
    standIn = await readyStandIn();
  });

  const call = async (method: string, path: string, content?: object) => {
    const headers = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' };
    const body = content === undefined ? {} : { body: JSON.stringify(content) };
    const reply = await standIn.handle({ method, path, headers, ...body });
    return { status: reply.status, body: JSON.parse(reply.body) };
  };
  const portsOf = ({ spec }: { spec: { ports: { nodePort?: number }[] } }) => spec.ports;

  test('a deleted namespace is removed with its Services, whose addresses are free again', async () => {
    const clusterIP = '10.0.0.77';
    const service = { metadata: { name: 'web' }, spec: { clusterIP, ports: [{ port: 80 }] } };
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    expect(await call('POST', '/api/v1/namespaces/shop/services', service)).toMatchObject({ status: 201 });
    expect(await call('DELETE', '/api/v1/namespaces/shop')).toMatchObject({
      body: { status: { phase: 'Terminating' } },
    });
    expect(await call('GET', '/api/v1/namespaces/shop')).toMatchObject({ status: 404 });
    expect((await call('GET', '/api/v1/services')).body.items).toEqual([]);
    expect(await call('POST', services, service)).toMatchObject({ status: 201 });
  });

  test('the stand-in clears and releases the node ports of a Service that becomes a ClusterIP', async () => {
    const spec = { type: 'NodePort', ports: [{ port: 80, nodePort: 30_080 }] };
    await call('POST', services, { metadata: { name: 'np' }, spec });
    const { status, body } = await call('PATCH', `${services}/np`, { spec: { type: 'ClusterIP' } });
    expect({ status, ports: portsOf(body) }).toEqual({
      status: 200,
      ports: [{ protocol: 'TCP', targetPort: 80, port: 80 }],
    });
    expect(await call('POST', services, { metadata: { name: 'next' }, spec })).toMatchObject({ status: 201 });
  });

  test('a 422 names the field and its fault in the causes, which kubectl prints', async () => {
    await call('POST', services, { metadata: { name: 'np' }, spec: { ports: [{ port: 80 }] } });
    const patch = { spec: { ports: [{ port: 80, nodePort: 30_081 }] } };
    const message = "Forbidden: may not be used when `type` is 'ClusterIP'";
    expect(await call('PATCH', `${services}/np`, patch)).toMatchObject({
      status: 422,
      body: {
        details: {
          name: 'np',
          kind: 'Service',
          causes: [{ reason: 'FieldValueForbidden', field: 'spec.ports[0].nodePort', message }],
        },
      },
    });
  });
});
