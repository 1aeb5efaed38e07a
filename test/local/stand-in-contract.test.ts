import { beforeAll, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { BytesInFlight, readWhole } from '../../lib/kubernetes/reply-bounds.ts';
import { ApiServerConnections, type Transport } from '../../lib/kubernetes/transport.ts';
import { listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
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

describe('what the stand-in API server refuses', () => {
  let transport: Transport;
  beforeAll(async () => {
    transport = transportTo(await readyStandIn());
  });

  const call = async (method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, body?: string) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await transport(
      { method, path, headers, ...(body !== undefined && { body }) },
      new AbortController().signal,
    );
    return {
      status: reply.status,
      text: new TextDecoder().decode(await readWhole(reply.body, 'the test', new BytesInFlight())),
    };
  };

  test.each([
    ['a path that nobody serves is a 404', 'GET', '/apis/apps/v1/deployments', undefined, 404, 'page not found'],
    ['a body that is no JSON is a 400', 'POST', '/api/v1/namespaces', '{', 400, 'BadRequest'],
    ['a body that is no object is a 400', 'POST', '/api/v1/namespaces', '7', 400, 'BadRequest'],
    ['a method that nobody serves is a 405', 'PUT', '/api/v1/namespaces', '{}', 405, 'MethodNotAllowed'],
    ['a watch is a 405', 'GET', '/api/v1/services?watch=true', undefined, 405, 'serves no watch'],
    ['a dry run is a 400', 'POST', '/api/v1/namespaces?dryRun=All', '{}', 400, 'no dry run'],
    ['a patch of another kind is a 415', 'PATCH', '/api/v1/namespaces/default', '[]', 415, 'UnsupportedMediaType'],
    [
      'a namespace with a bad name is a 422',
      'POST',
      '/api/v1/namespaces',
      '{"metadata":{"name":"Bad Name"}}',
      422,
      'RFC 1123',
    ],
  ] as const)('%s', async (_title, method, path, body, status, text) => {
    await expect(call(method, path, body)).resolves.toEqual({ status, text: expect.stringContaining(text) });
  });
});
