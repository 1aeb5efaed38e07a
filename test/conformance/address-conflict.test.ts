import { expect, test } from '@jest/globals';
import type { V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { runningControlPlane } from './running-control-plane.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const { etcd, apiserver } = runningControlPlane();

async function parentOf(address: string): Promise<string | undefined> {
  const path = `/apis/networking.k8s.io/v1/ipaddresses/${address}`;
  const { status, body } = await apiserver.request<WholeObject<V1IPAddress>>('GET', path);
  return status === 404 ? undefined : body.spec.parentRef.name;
}

/** Stores a Service with this address, as a restored backup does. */
function store(name: string, address: string): Promise<void> {
  const policies = { ipFamilyPolicy: 'SingleStack', sessionAffinity: 'None', internalTrafficPolicy: 'Cluster' };
  const addresses = { type: 'ClusterIP', clusterIP: address, clusterIPs: [address], ipFamilies: ['IPv4'] };
  const ports = [{ port: 80, protocol: 'TCP', targetPort: 80 }];
  return etcd.putServices([storedService('default', name, { ...addresses, ...policies, ports })]);
}

/* docs/tasks/address-conflict.md depends on this behaviour of API servers. */
test.each([
  ['the Service that the IPAddress names', '10.0.0.60', 'named-60', 'second-60'],
  ['the other Service', '10.0.0.61', 'second-61', 'named-61'],
])(
  'if two Services have the same address and %s is deleted, the address has no IPAddress until the remaining Service is written',
  async (_, address, deleted, other) => {
    const [named = '', second = ''] = [deleted, other].toSorted();
    await store(named, address);
    await eventually(async () => expect(await parentOf(address)).toBe(named));
    await store(second, address);

    expect(await apiserver.request('DELETE', `${SERVICES}/${deleted}`)).toMatchObject({ status: 200 });
    // The repair of the API server may have recorded the address for the other Service already.
    expect([undefined, other]).toContain(await parentOf(address));

    const annotation = { metadata: { annotations: { checked: 'now' } } };
    expect(await apiserver.request('PATCH', `${SERVICES}/${other}`, annotation)).toMatchObject({ status: 200 });
    await eventually(async () => expect(await parentOf(address)).toBe(other));
  },
);
