import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { ApiServerConnections } from '../../lib/kubernetes/transport.ts';
import { type ListeningStandIn, listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { apiServerContract } from '../contract/api-server.ts';
import { clusterPortContract } from '../contract/cluster-port.ts';
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

describe('answers of the stand-in API server', () => {
  let standIn: StandInApiServer;
  beforeAll(async () => {
    standIn = await readyStandIn();
  });

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
  ] as const)(
    'the stand-in API server gives the documented reply: %s',
    async (_title, method, path, body, status, text) => {
      const headers = { 'content-type': 'application/json' };
      const reply = await standIn.handle({ method, path, headers, ...(body !== undefined && { body }) });
      expect(reply).toMatchObject({ status, body: expect.stringContaining(text) });
    },
  );
});
