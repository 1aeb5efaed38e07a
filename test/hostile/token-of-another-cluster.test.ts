import { expect, test } from '@jest/globals';
import { probeAddresses, resolveAddresses } from '../../lib/api-servers/probe-addresses.ts';
import { webIdentityAccess } from '../../lib/kubernetes/credentials.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec, aServer } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { proberWith } from '../support/transport-to.ts';

const authority = makeAuthority('of the attacker');
const certificateAuthorityData = Buffer.from(authority.ca).toString('base64');
const TOKEN = 'token-for-the-api-server-of-cluster-b';
const { signal } = new AbortController();

/** Starts a server with a certificate of the attacker's CA, and runs the probes of a spec. @returns the received credentials */
async function authorizationSeen(
  serverOf: (origin: string) => string,
  probeOf: (origin: string) => { readonly url?: string; readonly serverName?: string } = () => ({}),
) {
  const attacker = await startFaultServer(() => ({ body: 'ok' }), authority.issue(['127.0.0.1', 'b.example']));
  afterThisTest(attacker.stop);
  const server = serverOf(attacker.url);
  const apiServers = [aServer('127.0.0.1', { authenticate: true, ...probeOf(attacker.url) })];
  const base = aClusterSpec({ apiServers, kubeconfig: { webIdentity: { server, certificateAuthorityData } } });
  const spec = { ...base, service: { ...base.service, securePort: Number(new URL(attacker.url).port) } };
  const access = await webIdentityAccess({ server, certificateAuthorityData }, async () => TOKEN, {});
  const { addresses } = await resolveAddresses(spec, async () => undefined, []);
  await probeAddresses(addresses, proberWith(access), signal);
  return attacker.requests.map(({ headers }) => headers['authorization']);
}

const ofB = () => 'https://b.example:6443';

test.each([
  ['an address of the attacker', ofB, undefined],
  ['an address of the attacker and the server name of B', ofB, () => ({ serverName: 'b.example' })],
  ['a probe.url of the attacker', ofB, (origin: string) => ({ url: `${origin}/readyz` })],
  ['an address of the attacker on the host of B, with another port', () => 'https://127.0.0.1:6443', undefined],
])('the servers of a spec do not get the token of cluster B if the spec has %s', async (_, serverOf, probeOf) => {
  expect(await authorizationSeen(serverOf, probeOf)).toEqual([undefined]);
});

test('a request to the server in webIdentity.server contains the token for that server', async () => {
  expect(await authorizationSeen((origin) => origin)).toEqual([`Bearer ${TOKEN}`]);
});
