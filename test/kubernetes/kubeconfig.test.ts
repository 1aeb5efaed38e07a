import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { loadKubeconfigFile, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { runPlugin } from '../../local/kubeconfig-plugins.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const authority = makeAuthority('the CA of a test');
const { cert, key: keyPem } = authority.issue(['a-user']);
const SECRET = 'fhqwhgads-not-to-be-shown';

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function kubeconfig(cluster: object, user: object, more: object = {}) {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [
      { name: 'here', context: { cluster: 'one', user: 'admin' } },
      { name: 'there', context: { cluster: 'two', user: 'admin' } },
      { name: 'torn', context: { cluster: 'one', user: 'unlisted' } },
    ],
    clusters: [
      { name: 'one', cluster: { server: 'https://10.0.0.1:6443', ...cluster } },
      { name: 'two', cluster: { server: 'https://10.0.0.2:6443/prefix/' } },
    ],
    users: [{ name: 'admin', user }],
    ...more,
  });
}

const withCa = { 'certificate-authority-data': base64(authority.ca) };

test('a kubeconfig gives the server, the CA and the token of its current context', async () => {
  const access = await parseKubeconfig(kubeconfig(withCa, { token: SECRET }), 'of a test');
  expect(access).toMatchObject({
    server: 'https://10.0.0.1:6443',
    basePath: '',
    context: 'here',
    skipTlsVerify: false,
  });
  expect(access.tls().ca?.toString()).toBe(authority.ca);
  expect(access.tls().rejectUnauthorized).toBe(true);
  await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
});

test('a kubeconfig gives the server, CA and token of another context if the spec names it', async () => {
  const access = await parseKubeconfig(kubeconfig({}, { token: SECRET }), 'of a test', { context: 'there' });
  expect(access).toMatchObject({ server: 'https://10.0.0.2:6443', basePath: '/prefix', context: 'there' });
});

test('a kubeconfig gives a client certificate and a server name', async () => {
  const user = {
    'client-certificate-data': base64(cert),
    'client-key-data': base64(keyPem),
  };
  const access = await parseKubeconfig(
    kubeconfig({ ...withCa, 'tls-server-name': 'api.example.com' }, user),
    'of a test',
  );
  expect(access.tls()).toMatchObject({ servername: 'api.example.com' });
  expect(access.tls().cert?.toString()).toBe(cert);
  expect(access.tls().key?.toString()).toBe(keyPem);
  await expect(access.authHeaders()).resolves.toEqual({});
});

test('a kubeconfig reports that it disables verification', async () => {
  const access = await parseKubeconfig(
    kubeconfig({ 'insecure-skip-tls-verify': true }, { token: SECRET }),
    'of a test',
  );
  expect(access.skipTlsVerify).toBe(true);
  expect(access.tls().rejectUnauthorized).toBe(false);
});

test('a kubeconfig may name a server without TLS for a user without a credential', async () => {
  const access = await parseKubeconfig(kubeconfig({ server: 'http://127.0.0.1:8001' }, {}), 'of a test');
  expect(access.server).toBe('http://127.0.0.1:8001');
  await expect(access.authHeaders()).resolves.toEqual({});
});

test('the printed access of a kubeconfig contains no credential', async () => {
  const user = { token: SECRET, 'client-certificate-data': base64(cert), 'client-key-data': base64(keyPem) };
  const access = await parseKubeconfig(kubeconfig(withCa, user), 'of a test');
  const printed = inspect(access, { depth: 9 }) + JSON.stringify(access);
  expect(printed).not.toContain(SECRET);
  expect(printed).not.toContain('PRIVATE KEY');
});

describe('a kubeconfig file', () => {
  const folder = temporaryFolder();

  beforeAll(async () => {
    await writeFile(join(folder, 'ca.pem'), authority.ca);
    await writeFile(join(folder, 'token'), `${SECRET}\n`);
  });

  test('a kubeconfig file may name files in its folder', async () => {
    const file = join(folder, 'config');
    await writeFile(file, kubeconfig({ 'certificate-authority': 'ca.pem' }, { tokenFile: 'token' }));
    const access = await loadKubeconfigFile(file);
    expect(access.tls().ca?.toString()).toBe(authority.ca);
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
  });

  test('a kubeconfig file runs its exec plugin only when that is allowed', async () => {
    const file = join(folder, 'exec');
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: SECRET },
    };
    const command = { command: process.execPath, args: ['-e', `console.log('${JSON.stringify(credential)}')`] };
    await writeFile(file, kubeconfig({}, { exec: { apiVersion: 'client.authentication.k8s.io/v1', ...command } }));
    await expect(loadKubeconfigFile(file)).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringMatching(/exec plugin.*Use a token/),
    });
    const access = await loadKubeconfigFile(file, { runPlugin });
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
  });

  test('the error about a missing kubeconfig file names the file', async () => {
    const file = join(folder, 'missing');
    await expect(loadKubeconfigFile(file)).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: `kubeconfig ${file}: cannot be read (ENOENT). Name a file that exists and that this user may read.`,
    });
  });

  test('a kubeconfig with missing certificate files is refused', async () => {
    const file = join(folder, 'torn');
    await writeFile(file, kubeconfig({ 'certificate-authority': 'missing.pem' }, { token: SECRET }));
    await expect(loadKubeconfigFile(file)).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringContaining('missing.pem'),
    });
  });
});

describe('a kubeconfig is refused with a resolution and without its contents', () => {
  const user = { token: SECRET };
  const withUser = (fields: object) => kubeconfig({}, fields);
  const withCluster = (fields: object) => kubeconfig(fields, user);
  const withTop = (fields: object) => kubeconfig({}, user, fields);
  const key = { 'client-certificate-data': base64(cert), 'client-key-data': base64(SECRET) };
  test.each<[string, string, RegExp]>([
    ['is empty', '', /not a kubeconfig.*kind Config/],
    ['is a list', '- token: fhqwhgads-not-to-be-shown', /not a kubeconfig/],
    ['is not YAML', `users:\n- user: {token: "${SECRET}\n`, /not YAML \(line \d+.*kubectl config view --raw/],
    ['has a cluster without a server', withCluster({ server: '' }), /clusters\[0\].cluster.server is missing/],
    ['has a field of the wrong type', withCluster({ server: 5 }), /not a kubeconfig/],
    [
      'has not the context',
      withTop({ 'current-context': 'nowhere' }),
      /no context "nowhere".*It has: here, there, torn/,
    ],
    ['has no current context', withTop({ 'current-context': '' }), /no current-context.*It has: here/],
    ['lacks the user of its context', withTop({ 'current-context': 'torn' }), /names user "unlisted".*Add it/],
    ['has no clusters', withTop({ clusters: [] }), /names cluster "one"/],
    ['has a server that is no URL', withCluster({ server: '10.0.0.1:6443' }), /not the URL.*https:\/\/10/],
    ['has a password in its URL', withCluster({ server: `https://me:${SECRET}@10.0.0.1` }), /not the URL/],
    ['would send a token in clear', withCluster({ server: 'http://10.0.0.1' }), /over http:\/\/.*Use https/],
    ['names a proxy', withCluster({ 'proxy-url': 'http://10.0.0.9' }), /proxy-url, which is not supported/],
    ['impersonates a user', withUser({ ...user, as: 'admin' }), /has as, which is not supported/],
    ['impersonates groups', withUser({ ...user, 'as-groups': ['a'] }), /as-groups, which is not supported/],
    ['has a password', withUser({ username: 'admin', password: SECRET }), /user name and a password/],
    ['has an auth provider', withUser({ 'auth-provider': { name: 'oidc' } }), /auth-provider plugin/],
    ['has a CA to ignore', withCluster({ ...withCa, 'insecure-skip-tls-verify': true }), /Remove insecure/],
    ['names a CA file', withCluster({ 'certificate-authority': '/etc/ca' }), /Embed them.*--flatten/],
    ['names a token file', withUser({ tokenFile: '/etc/token' }), /Embed the token/],
    ['has a CA that is no PEM', withCluster({ 'certificate-authority-data': base64(SECRET) }), /does not parse.*PEM/],
    ['has a key that is no PEM', withUser(key), /does not parse/],
  ])('a kubeconfig is refused if it %s', async (_, text, message) => {
    const error: unknown = await parseKubeconfig(text, 'of a test').catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'BadKubeconfig', message: expect.stringMatching(message) });
    expect(error).toMatchObject({ message: expect.stringMatching(/^kubeconfig of a test: /) });
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });
});
