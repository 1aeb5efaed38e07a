import { expect, jest, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { renewed, webIdentityAccess } from '../../lib/kubernetes/credentials.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';

const certificateAuthorityData = Buffer.from(makeAuthority('test').ca).toString('base64');

/** Returns a token that is renewed by numbered requests. Requests with a number in `failing` fail. */
function issuer(failing: readonly number[] = []) {
  const clock = { seconds: 0 };
  let requests = 0;
  const request = async () => {
    requests += 1;
    if (failing.includes(requests)) throw new ClusterError('Unavailable', 'no answer');
    return `token-${requests}`;
  };
  return { clock, token: renewed(request, 300, () => clock.seconds * 1000) };
}

test('a token with a lifetime of five minutes is renewed after four minutes', async () => {
  const { clock, token } = issuer();
  const tokens: string[] = [];
  for (const seconds of [0, 239, 240, 479, 480]) {
    clock.seconds = seconds;
    tokens.push(await token());
  }
  expect(tokens).toEqual(['token-1', 'token-1', 'token-2', 'token-2', 'token-3']);
});

test('simultaneous requests renew a token only once', async () => {
  const { clock, token } = issuer();
  expect(await Promise.all([token(), token()])).toEqual(['token-1', 'token-1']);
  clock.seconds = 240;
  expect(await Promise.all([token(), token()])).toEqual(['token-2', 'token-2']);
});

test('if the renewal of a token fails, the token is used until it expires, and not longer', async () => {
  const { clock, token } = issuer([2, 3]);
  await token();
  clock.seconds = 299;
  expect(await token()).toBe('token-1');
  clock.seconds = 300;
  await expect(token()).rejects.toMatchObject({ code: 'Unavailable' });
  expect(await token()).toBe('token-4');
});

const STS = [
  ...['https://sts.amazonaws.com', 'https://sts.amazonaws.com/', 'https://STS.amazonaws.com.:443'],
  ...['https://sts.eu-west-1.amazonaws.com', 'https://sts-fips.us-east-1.amazonaws.com'],
  ...['https://sts.cn-north-1.amazonaws.com.cn', 'https://vpce-1.sts.eu-west-1.vpce.amazonaws.com'],
  ...['https://sts.eu-west-1.api.aws'],
] as const;

const server = 'https://203.0.113.10:6443';

test('the credential of webIdentity is a token of AWS STS, and the CA of the spec verifies the API server', async () => {
  const access = await webIdentityAccess({ server, certificateAuthorityData }, async () => 'a-token', {});
  expect(access).toMatchObject({ server, isIssuedForServer: true });
  expect(await access.authHeaders()).toEqual({ Authorization: 'Bearer a-token' });
  expect(access.tls()).toMatchObject({ rejectUnauthorized: true });
  expect(access.tls().ca?.toString()).toContain('BEGIN CERTIFICATE');
  expect(JSON.stringify(access)).not.toContain('a-token');
});

test.each([
  ['with an http URL', { server: 'http://203.0.113.10:6443' }, 'would send the credential'],
  ['with a link-local address', { server: 'https://169.254.169.254' }, 'loopback, link-local or metadata address'],
  ['with the name localhost', { server: 'https://localhost:6443' }, 'loopback, link-local or metadata address'],
  ['with an invalid CA', { server, certificateAuthorityData: 'AAAA' }, 'does not parse'],
  ...STS.map((audience) => [`with ${audience}`, { server: audience }, 'AWS STS is the audience'] as const),
])('a webIdentity.server %s is refused, and no token of AWS STS is requested', async (_, webIdentity, problem) => {
  const requestToken = jest.fn(async () => 'a-token');
  const access = webIdentityAccess(webIdentity, requestToken, { refuseLocal: true });
  await expect(access).rejects.toMatchObject({ code: 'BadKubeconfig', message: expect.stringContaining(problem) });
  expect(requestToken).not.toHaveBeenCalled();
});

test('if the host name in webIdentity.server cannot be resolved, the error has the code Unavailable, and no token is requested', async () => {
  const requestToken = jest.fn(async () => 'a-token');
  // The first label is longer than 63 letters, so that no query is sent to a name server.
  const unresolved = { server: `https://${'a'.repeat(64)}.example:6443` };
  const access = webIdentityAccess(unresolved, requestToken, { refuseLocal: true });
  await expect(access).rejects.toMatchObject({ code: 'Unavailable' });
  expect(requestToken).not.toHaveBeenCalled();
});
