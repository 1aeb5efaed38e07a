import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { clusterPort } from '../../lib/kubernetes/api-server-cluster.ts';
import { listAllServices } from '../../lib/kubernetes/item-reader.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { listServiceCidrs } from '../../lib/kubernetes/service-cidrs.ts';
import { ApiServerConnections, type Transport } from '../../lib/kubernetes/transport.ts';
import { apiServerContract } from '../contract/api-server.ts';
import { clusterPortContract } from '../contract/cluster-port.ts';
import { storedService } from '../support/etcd-client.ts';
import { runningControlPlane } from './running-control-plane.ts';

const { etcd, apiserver } = runningControlPlane();
let transport: Transport;
const connections = new ApiServerConnections();

beforeAll(async () => {
  transport = connections.transport(await parseKubeconfig(apiserver.kubeconfigYaml, 'of the test'));
});

afterAll(() => connections.close());

function portOver(over: Transport) {
  const deadline = AbortSignal.timeout(60_000);
  return clusterPort({ transport: over, server: apiserver.url, deadline, userAgent: 'test' });
}

clusterPortContract('a real kube-apiserver', async () => transport);
apiServerContract('a real kube-apiserver', async () => transport);

test('the protobuf of a real kube-apiserver has the same Services as its JSON', async () => {
  await etcd.putServices([
    storedService('default', 'odd', { clusterIP: '10.0.0.300', clusterIPs: ['10.0.0.300', '2001:db8::1'] }),
    storedService('default', 'bare', {}),
    storedService('default', 'local', {
      type: 'LoadBalancer',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30_123,
      ports: [{ port: 80, nodePort: 30_080, protocol: 'SCTP' }],
    }),
  ]);
  const contentTypes: (string | undefined)[] = [];
  const watching: Transport = async (request, signal) => {
    const reply = await transport(request, signal);
    contentTypes.push(reply.headers['content-type']);
    return reply;
  };
  const jsonOnly: Transport = (request, signal) =>
    transport({ ...request, headers: { ...request.headers, accept: 'application/json' } }, signal);

  const fromProtobuf = await listAllServices(portOver(watching));
  expect(contentTypes).toEqual(['application/vnd.kubernetes.protobuf']);
  expect(fromProtobuf.map((claim) => claim.name)).toEqual(expect.arrayContaining(['odd', 'bare', 'local']));
  await expect(listAllServices(portOver(jsonOnly))).resolves.toEqual(fromProtobuf);
});

test('an unknown token is reported as Unauthorized in protobuf and JSON', async () => {
  const text = apiserver.kubeconfigYaml.replaceAll(apiserver.token, 'unknown');
  const port = portOver(connections.transport(await parseKubeconfig(text, 'of a stranger')));
  await expect(port.list('Namespace', undefined)).rejects.toMatchObject({ code: 'Unauthorized' });
  await expect(listAllServices(port)).rejects.toMatchObject({ code: 'Unauthorized' });
});

test('for a kind that the API server does not serve, a read returns no object, and a create is refused', async () => {
  const older: Transport = (request, signal) =>
    transport({ ...request, path: request.path.replace('/servicecidrs', '/servicecidrz') }, signal);
  const port = portOver(older);
  await expect(port.get({ kind: 'ServiceCIDR', name: 'kubernetes' })).resolves.toBeUndefined();
  await expect(listServiceCidrs(port)).resolves.toEqual([]);
  const object = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR', metadata: { name: 'kubernetes' } };
  const message = expect.stringContaining('does not serve that kind');
  await expect(port.create(object)).rejects.toMatchObject({ code: 'Rejected', message });
});
