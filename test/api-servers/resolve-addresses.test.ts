import { expect, test } from '@jest/globals';
import { resolveAddresses } from '../../lib/api-servers/probe-addresses.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { Lease } from '../../lib/leases/lease.ts';
import { newLease } from '../../lib/leases/lease-states.ts';
import type { ApiServerSpec } from '../../lib/spec/cluster-spec.ts';
import { aClusterSpec, aHost, aServer } from '../support/a-cluster-spec.ts';

const ADDRESS = '10.9.8.6';
const dnsName = aHost('api.example.com');
const group = aHost('arn:aws', { targetGroupArn: 'arn:aws' });

type Records = readonly unknown[] | Error;

/** Resolves the addresses of these API servers, whose sources have these records. */
function resolve(apiServers: readonly ApiServerSpec[], records: Records, leases?: readonly Lease[], unread?: string) {
  const lookUp = async () => {
    if (records instanceof Error) throw records;
    return { addresses: records as string[], ...(unread !== undefined && { unread }) };
  };
  return resolveAddresses(aClusterSpec({ apiServers: [...apiServers] }), lookUp, leases ?? []);
}

test.each([
  { name: 'of a host name are probed with this name as server name', source: dnsName, serverName: 'api.example.com' },
  { name: 'of a target group are probed without a server name', source: group, serverName: undefined },
])('the addresses $name', async ({ source, serverName }) => {
  const { addresses } = await resolve([source], ['10.9.8.7']);
  const { host } = source;
  expect(addresses).toMatchObject([{ address: '10.9.8.7', host, target: { url: 'https://10.9.8.7:6443/readyz' } }]);
  expect(addresses[0]?.target.serverName).toBe(serverName);
});

test('if the look-up of a source fails, its addresses with leases are still probed, and a finding contains the error and these addresses', async () => {
  const failure = new ClusterError('BadKubeconfig', 'DescribeTargetHealth was denied');
  const leases = [{ ...newLease('10.9.8.7'), host: group.host }, newLease('10.9.8.8')];
  const resolved = await resolve([group], failure, leases);
  expect(resolved).toMatchObject({ addresses: [{ address: '10.9.8.7' }], unresolved: [group.host] });
  const message = 'the look-up of arn:aws failed (DescribeTargetHealth was denied); its known addresses stay: 10.9.8.7';
  expect(resolved.findings).toMatchObject([{ type: 'other', message }]);
});

test('if the look-up of a part of a source fails, the found addresses and the addresses with leases are probed, and a finding names the failed part', async () => {
  const leases = [{ ...newLease('10.9.8.7'), host: group.host }];
  const resolved = await resolve([group], ['10.9.8.6'], leases, 'the host name lb.example could not be looked up');
  expect(resolved.addresses.map(({ address }) => address).sort()).toEqual(['10.9.8.6', '10.9.8.7']);
  expect(resolved.unresolved).toEqual([group.host]);
  expect(resolved.findings).toMatchObject([{ item: group.host, message: expect.stringContaining('lb.example') }]);
});

const known = { ...newLease('10.9.8.7'), host: dnsName.host };
const noRecord = { item: dnsName.host, message: expect.stringContaining('no record is an IPv4 address') };
test.each([
  ['only the records that are allowed in Endpoints', [ADDRESS, 'fd00::1', '127.0.0.1'], ADDRESS, { item: '127.0.0.1' }],
  ['the addresses with leases if all records are of the other family', ['fd00::1'], '10.9.8.7', noRecord],
])('the addresses of a source are %s', async (_, records, address, finding) => {
  const resolved = await resolve([dnsName], records, [known]);
  expect(resolved.addresses).toMatchObject([{ address }]);
  expect(resolved.findings).toMatchObject([finding]);
});

test('an address in the range of cluster IPs is published, because an API server may have it, and a finding contains the range', async () => {
  const found = async () => ({ addresses: ['10.96.0.1', '10.9.8.6'] });
  const spec = aClusterSpec({ apiServers: [group], serviceClusterIPRanges: ['10.96.0.0/16'] });
  const { addresses, findings } = await resolveAddresses(spec, found, []);
  expect(addresses.map(({ address }) => address)).toEqual(['10.96.0.1', '10.9.8.6']);
  expect(findings).toMatchObject([{ item: '10.96.0.1', message: expect.stringContaining('10.96.0.0/16') }]);
});

test('each address of a source is used once, in canonical form, even if a target group or Service has another spelling', async () => {
  const records = ['::ffff:10.9.8.7', '010.9.8.7', '10.9.8.08', ...Array<string>(32).fill('10.9.8.7'), '10.9.8.6'];
  const { addresses, findings } = await resolve([group, aServer('10.9.8.8')], records);
  expect(addresses.map(({ address }) => address).sort()).toEqual(['10.9.8.6', '10.9.8.7', '10.9.8.8']);
  expect(findings).toEqual([]);
});

test('a record that is not an address is ignored, and the finding about it has a short message', async () => {
  const records = [7, `x\n${'y'.repeat(100_000)}`, '10.9.8.7'];
  const { addresses, findings } = await resolve([group], records);
  expect(addresses).toMatchObject([{ address: '10.9.8.7' }]);
  expect(findings.map(({ message }) => message.length < 1_000 && !message.includes('\n'))).toEqual([true, true]);
});

test('a source causes at most 34 findings, even if Endpoints must not contain any of its 901 addresses', async () => {
  const unfit = Array.from({ length: 900 }, (_, n) => `169.254.${n >> 8}.${n & 255}`);
  expect((await resolve([dnsName], ['127.0.0.1', ...unfit])).findings.length).toBeLessThanOrEqual(34);
});

test('at most 1,000 addresses of a source are read, and at most 32 are used, so that no source keeps the process busy', async () => {
  const records = Array.from({ length: 100_000 }, (_, n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  const { addresses, findings } = await resolve([group], records);
  expect(addresses).toHaveLength(32);
  expect(findings).toMatchObject([{ message: expect.stringContaining('resolves to 1000 addresses') }]);
});

test('an address that is in the spec and in the records of a source is probed once, with the settings of the spec', async () => {
  const { addresses } = await resolve([dnsName, aServer('10.9.8.7')], ['10.9.8.7']);
  expect(addresses).toMatchObject([{ address: '10.9.8.7', kind: 'server' }]);
  expect(addresses[0]).not.toHaveProperty('host');
});

const at = (url: string) => ({ path: '/readyz', authenticate: true, url });
test.each([
  ['its path at the address', { path: '/healthz', authenticate: true }, 'https://[fd00::2]:6443/healthz', true],
  ['a URL at an address of the spec', at('https://[fd00:0:0::1]:7443/livez'), undefined, true],
  ['a URL at a host name of the spec', at('https://api.example.com/livez'), undefined, true],
  ['a URL at another host', at('https://tenant.example.com/livez'), undefined, 'atKubeconfigHost'],
])('a probe requests %s, and sends the credential only to hosts of the spec or the kubeconfig', async (...row) => {
  const [, own, url, authenticate] = row;
  const server = { address: 'fd00::2', kind: 'server', probe: own } as const;
  const { addresses } = await resolve([server, aServer('fd00::1'), dnsName], []);
  const target = { url: url ?? own.url, authenticate, ...(url !== undefined && { isOneServer: true }) };
  expect(addresses[0]?.target).toEqual(target);
});
