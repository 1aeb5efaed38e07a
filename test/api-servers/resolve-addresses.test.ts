import { describe, expect, test } from '@jest/globals';
import { resolveAddresses } from '../../lib/api-servers/probe-addresses.ts';
import type { SharedHostSpec } from '../../lib/cluster/cluster-spec.ts';
import { newLease } from '../../lib/endpoints/next-lease.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';

const probe = { path: '/readyz', authenticate: false };
const dnsName: SharedHostSpec = { host: 'api.example.com', kind: 'shared', probe };
const group: SharedHostSpec = { host: 'arn:aws', targetGroupArn: 'arn:aws', kind: 'shared', probe };

describe('the addresses of a source', () => {
  test.each([
    { name: 'of a host name are probed with that name', source: dnsName, serverName: 'api.example.com' },
    { name: 'of a target group are probed by their addresses', source: group, serverName: undefined },
  ])('$name', async ({ source, serverName }) => {
    const { addresses } = await resolveAddresses(aClusterSpec({ apiServers: [source] }), async () => ['10.9.8.7'], []);

    const { host } = source;
    expect(addresses).toMatchObject([{ address: '10.9.8.7', host, target: { url: 'https://10.9.8.7:6443/readyz' } }]);
    expect(addresses[0]?.target.serverName).toBe(serverName);
  });

  test('the addresses of a source stay when the look-up fails, with its reason and the addresses in the finding', async () => {
    const failure = new ClusterError('BadKubeconfig', 'DescribeTargetHealth was denied');
    const leases = [{ ...newLease('10.9.8.7'), host: group.host }, newLease('10.9.8.8')];

    const spec = aClusterSpec({ apiServers: [group] });
    const resolved = await resolveAddresses(spec, () => Promise.reject(failure), leases);

    expect(resolved).toMatchObject({ addresses: [{ address: '10.9.8.7' }], unresolved: [group.host] });
    const message =
      'the look-up of arn:aws failed (DescribeTargetHealth was denied); its known addresses stay: 10.9.8.7';
    expect(resolved.findings).toMatchObject([{ type: 'other', message }]);
  });
});
