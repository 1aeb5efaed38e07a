import { describe, expect, test } from '@jest/globals';
import type { V1IPAddress } from '@kubernetes/client-node';
import type { WholeObject } from '../../lib/cluster/kubernetes-objects.ts';
import { storedService } from '../support/etcd-client.ts';
import { eventually } from '../support/eventually.ts';
import { runningControlPlane } from './running-control-plane.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const ipAddress = (address: string) => `/apis/networking.k8s.io/v1/ipaddresses/${address}`;

/** Verifies the statements of docs/tasks/address-conflict.md. */
describe('Services that share a cluster IP in a cluster whose API servers allocate', () => {
  const { etcd, apiserver } = runningControlPlane();

  const parentOf = async (address: string) => {
    const { status, body } = await apiserver.request<WholeObject<V1IPAddress>>('GET', ipAddress(address));
    return status === 404 ? undefined : body.spec.parentRef.name;
  };
  const withAddress = (name: string, address: string) =>
    storedService('default', name, {
      type: 'ClusterIP',
      clusterIP: address,
      clusterIPs: [address],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });

  test.each([
    ['the Service that the IPAddress names', '10.0.0.60', (parent: string) => parent],
    ['the other Service', '10.0.0.61', (parent: string) => (parent === 'one' ? 'two' : 'one')],
  ] as const)(
    'if two Services have the same address and %s is deleted, the address has no IPAddress until the remaining Service is written',
    async (_, address, chosen) => {
      const services = ['one', 'two'].map((name) => `${name}-${address.replaceAll('.', '-')}`);
      await etcd.putServices(services.map((name) => withAddress(name, address)));
      const parent = await eventually(async () => {
        const name = await parentOf(address);
        if (name === undefined) throw new Error('the API server has not recorded the address yet');
        return name;
      });
      const [short = ''] = parent.split('-');
      const deleted = services.find((name) => name.startsWith(chosen(short))) ?? '';
      const other = services.find((name) => name !== deleted) ?? '';

      expect(await apiserver.request('DELETE', `${SERVICES}/${deleted}`)).toMatchObject({ status: 200 });
      // The repair of the API server may have recorded the address for the other Service already.
      expect([undefined, other]).toContain(await parentOf(address));

      const annotation = { metadata: { annotations: { checked: 'now' } } };
      const patched = await apiserver.request('PATCH', `${SERVICES}/${other}`, annotation);
      expect(patched).toMatchObject({ status: 200 });
      await eventually(async () => expect(await parentOf(address)).toBe(other));
    },
  );
});
