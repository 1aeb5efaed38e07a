import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { loadKubeconfigFile, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { LONGEST_TOKEN } from '../../lib/util/bounds.ts';
import { pluginRunner } from '../../local/kubeconfig-plugins.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const authority = makeAuthority('the CA of a test');
const { cert, key: keyPem } = authority.issue(['a-user']);
const SECRET = 'fhqwhgads-not-to-be-shown';
/** V8 has no strings of this length. The file has no blocks, so that it takes no space. */
const LONGER_THAN_A_TEXT = 600 * 1024 * 1024;

const base64 = (text: string) => Buffer.from(text).toString('base64');

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
const withToken = { token: SECRET };
const accessOf = (text: string, options = {}) => parseKubeconfig(text, 'of a test', options);

/** Expects that a kubeconfig is refused, and that the error contains its name and a resolution, and not the secret. */
async function expectRefused(text: string, message = /./): Promise<void> {
  const outcome: unknown = await accessOf(text).then(
    (access) => access.authHeaders(),
    (error: unknown) => error,
  );
  expect(outcome).toMatchObject({ code: 'BadKubeconfig', message: expect.stringMatching(message) });
  expect(outcome).toMatchObject({ message: expect.stringMatching(/^kubeconfig of a test: .{1,500}\. .+\.$/) });
  expect(inspect(outcome, { depth: 9 })).not.toContain(SECRET);
}

test('the server, the CA and the token are read from the current context of a kubeconfig, and printing the result does not reveal the token', async () => {
  const access = await accessOf(kubeconfig(withCa, withToken));
  expect(access).toMatchObject({ server: 'https://10.0.0.1:6443', basePath: '', context: 'here' });
  expect(inspect(access, { depth: 9 }) + JSON.stringify(access)).not.toContain(SECRET);
  expect(access.tls().ca?.toString()).toBe(authority.ca);
  expect(access.tls().rejectUnauthorized).toBe(true);
  await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
});

test('the server is read from another context of the kubeconfig if the spec contains the name of that context', async () => {
  const access = await accessOf(kubeconfig({}, withToken), { context: 'there' });
  expect(access).toMatchObject({ server: 'https://10.0.0.2:6443', basePath: '/prefix', context: 'there' });
});

test('a client certificate and a server name are read from a kubeconfig, and printing the result does not reveal the private key', async () => {
  const user = { 'client-certificate-data': base64(cert), 'client-key-data': base64(keyPem) };
  const access = await accessOf(kubeconfig({ ...withCa, 'tls-server-name': 'api.example.com' }, user));
  expect(access.tls()).toMatchObject({ servername: 'api.example.com' });
  expect(access.tls().cert?.toString()).toBe(cert);
  expect(access.tls().key?.toString()).toBe(keyPem);
  await expect(access.authHeaders()).resolves.toEqual({});
  expect(inspect(access, { depth: 9 }) + JSON.stringify(access)).not.toContain('PRIVATE KEY');
});

test('the line break at the end of a token in a kubeconfig is ignored', async () => {
  const access = await accessOf(kubeconfig({}, { token: 'abc\n' }));
  await expect(access.authHeaders()).resolves.toEqual({ Authorization: 'Bearer abc' });
});

describe('a kubeconfig file', () => {
  const folder = temporaryFolder();

  beforeAll(async () => {
    await writeFile(join(folder, 'ca.pem'), authority.ca);
    await writeFile(join(folder, 'token'), `${SECRET}\n`);
    await writeFile(join(folder, 'two-lines'), `${SECRET}\nsecond\n`);
  });

  async function fileWith(text: string): Promise<string> {
    const file = join(folder, 'config');
    await writeFile(file, text);
    return file;
  }

  test('a kubeconfig file can refer to files in its folder', async () => {
    const text = kubeconfig({ 'certificate-authority': 'ca.pem' }, { tokenFile: 'token' });
    const access = await loadKubeconfigFile(await fileWith(text));
    expect(access.tls().ca?.toString()).toBe(authority.ca);
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
  });

  test('the exec plugin of a kubeconfig file is run only if the caller allows it', async () => {
    const apiVersion = 'client.authentication.k8s.io/v1';
    const credential = { apiVersion, kind: 'ExecCredential', status: withToken };
    const args = ['-e', `console.log('${JSON.stringify(credential)}')`];
    const exec = { apiVersion, command: process.execPath, args, interactiveMode: 'Never' };
    const file = await fileWith(kubeconfig({}, { exec }));
    const message = expect.stringMatching(/has exec, and a plugin runs only.*Use a token/);
    await expect(loadKubeconfigFile(file)).rejects.toMatchObject({ code: 'BadKubeconfig', message });
    const runPlugin = pluginRunner({ signal: new AbortController().signal, say: () => undefined });
    const access = await loadKubeconfigFile(file, { runPlugin });
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: `Bearer ${SECRET}` });
  });

  const longFile = async () => {
    const file = await fileWith('');
    await truncate(file, LONGER_THAN_A_TEXT);
    return file;
  };
  const missing = join(folder, 'missing');
  const validText = kubeconfig({}, withToken);
  test.each<[string, () => string | Promise<string>, string]>([
    ['that does not exist', () => missing, `cannot read ${missing} (ENOENT). Name a file that exists`],
    ['with a missing CA', () => fileWith(kubeconfig({ 'certificate-authority': 'missing.pem' }, {})), 'missing.pem'],
    ['with a token file of two lines', () => fileWith(kubeconfig({}, { tokenFile: 'two-lines' })), 'line break'],
    ['that is too long to be a text of this process', longFile, 'is longer than 1048576 bytes'],
    ['that is too long only in bytes', () => fileWith(`${validText} # ${'é'.repeat(600_000)}`), 'than 1048576 bytes'],
  ])('a kubeconfig file %s is refused', async (_, file, message) => {
    const error = { code: 'BadKubeconfig', message: expect.stringContaining(message) };
    await expect(loadKubeconfigFile(await file())).rejects.toMatchObject(error);
  });
});

const withUser = (fields: object) => kubeconfig({}, fields);
const withCluster = (fields: object) => kubeconfig(fields, withToken);
const withTop = (fields: object) => kubeconfig({}, withToken, fields);
const key = { 'client-certificate-data': base64(cert), 'client-key-data': base64(SECRET) };
const longToken = SECRET.padEnd(LONGEST_TOKEN + 1, 'x');
test.each<[string, string, RegExp]>([
  ['is empty', '', /not a kubeconfig.*kind Config/],
  ['is a list', '- token: fhqwhgads-not-to-be-shown', /not a kubeconfig/],
  ['is not YAML', `users:\n- user: {token: "${SECRET}\n`, /not YAML \(line \d+.*kubectl config view --raw/],
  ['has a cluster without a server', withCluster({ server: '' }), /server of cluster "one" is missing/],
  ['has a field of the wrong type', withCluster({ server: 5 }), /server of cluster "one" has the wrong type/],
  ['lacks its current context', withTop({ 'current-context': 'nowhere' }), /has no context "nowhere".*: here, there/],
  ['has no current context', withTop({ 'current-context': '' }), /names no context to use.*contexts: here, there/],
  ['lacks the user', withTop({ 'current-context': 'torn' }), /has no user "unlisted".*its users: admin/],
  ['has no clusters', withTop({ clusters: [] }), /has no cluster "one".*it has none/],
  ['has a server that is no URL', withCluster({ server: '10.0.0.1:6443' }), /not the URL.*https:\/\/10/],
  ['has a password in its URL', withCluster({ server: `https://me:${SECRET}@10.0.0.1` }), /not the URL/],
  ['would send a token without TLS', withCluster({ server: 'http://10.0.0.1' }), /over http:\/\/.*Use https/],
  ['names a proxy', withCluster({ 'proxy-url': 'http://10.0.0.9' }), /has proxy-url, and a proxy is not supported/],
  ['impersonates a user', withUser({ ...withToken, as: 'admin' }), /has as, and impersonation is not supported/],
  ['impersonates groups', withUser({ ...withToken, 'as-groups': ['a'] }), /as-groups, and impersonation is not/],
  ['has a password', withUser({ username: 'admin', password: SECRET }), /user name and a password/],
  ['has an auth provider', withUser({ 'auth-provider': { name: 'oidc' } }), /auth-provider, and a plugin runs only/],
  ['has a CA and verifies nothing', withCluster({ ...withCa, 'insecure-skip-tls-verify': true }), /Remove insecure/],
  ['names a CA file', withCluster({ 'certificate-authority': '/etc/ca' }), /Embed it.*--flatten/],
  ['names a token file', withUser({ tokenFile: '/etc/token' }), /tokenFile, and a stored kubeconfig has no files/],
  ['has a CA that is no PEM', withCluster({ 'certificate-authority-data': base64(SECRET) }), /does not parse.*PEM/],
  ['has a key that is no PEM', withUser(key), /does not parse/],
  ['has a token of two lines', withUser({ token: `${SECRET}\nX-Remote-User: admin` }), /user "admin".*line break/],
  ['has a token with a space', withUser({ token: `${SECRET} x` }), /user "admin".*line break/],
  ['has a token of more than 4 KB', withUser({ token: longToken }), /user "admin" has more than 4096 characters/],
])('a kubeconfig is refused if it %s', (_, text, message) => expectRefused(text, message));

describe('a stored kubeconfig cannot execute a command or read a file', () => {
  const folder = temporaryFolder();
  const proof = join(folder, 'executed');
  const secretFile = join(folder, 'secret');
  beforeAll(() => writeFile(secretFile, SECRET));
  const exec = { command: '/bin/sh', args: ['-c', `echo pwned > ${proof}; echo '{"status":{"token":"x"}}'`] };
  const gcp = { 'cmd-path': '/bin/sh', 'cmd-args': `-c "touch ${proof}"` };
  const admin = (user: object) => ({ name: 'admin', user });
  const provider = (name: string, config: object) => admin({ 'auth-provider': { name, config } });

  test.each<[string, ...object[]]>([
    ['exec', admin({ exec })],
    ['exec beside a token', admin({ exec, token: 'x' })],
    ['the command of an auth provider', provider('gcp', gcp)],
    ['the field tokenFile', admin({ tokenFile: secretFile })],
    ['a duplicate user that has exec', admin({ token: 'x' }), admin({ exec })],
  ])('a stored kubeconfig is refused with %s', async (_, ...users) => {
    await expectRefused(kubeconfig({}, {}, { users }));
    expect(existsSync(proof)).toBe(false);
  });

  test.each<[string, ...object[]]>([
    ['the unknown field token-file', admin({ 'token-file': secretFile, token: 'x' })],
    ['exec in a user that is not used', admin({ token: 'x' }), { name: 'other', user: { exec } }],
  ])('a stored kubeconfig is accepted with %s, and no file is read and no command is executed', async (_, ...users) => {
    const access = await accessOf(kubeconfig({}, {}, { users }));
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: 'Bearer x' });
    expect(existsSync(proof)).toBe(false);
  });

  test('duplicate keys and merge keys in YAML do not hide a command from the check', async () => {
    await expectRefused(kubeconfig({}, { exec: null }).replace('exec: null', 'exec: null\n      exec: {command: sh}'));
    await expectRefused(kubeconfig({}, { '<<': { exec } }));
  });
});

describe('a kubeconfig that wastes time or memory, such as a YAML bomb or a huge key, is refused with a short message', () => {
  const bomb = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
  const aliases = ['a0: &a0 [x]', ...bomb, kubeconfig({}, { token: '*a9' })].join('\n');
  test.each([
    ['aliases that multiply', aliases, /has a YAML alias \(line 2\)/],
    ['deep nesting', `clusters: ${'['.repeat(20_000)}`, /./],
    ['65 KiB of text', `${kubeconfig({}, { token: 'x' })}# ${'x'.repeat(65 * 1024)}`, /./],
    ['7,000 keys', Array.from({ length: 7_000 }, (_, key) => `k${key}: 1`).join('\n'), /./],
    ['64 KB of punctuation', ':\n'.repeat(32_000), /has more than 8000 line breaks and punctuation marks/],
  ])('a kubeconfig with %s is refused with a short message', (_, text, message) => expectRefused(text, message));

  const withKey = (key: string) =>
    kubeconfig({}, { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) });

  test.each([
    ['that is encrypted', (key: string) => key],
    ['that is encrypted but labelled as not encrypted', (key: string) => key.replaceAll('ENCRYPTED ', '')],
  ])('a client key %s is refused before any round of key derivation', async (_, changed) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    // TLS tries the empty password by default, and would accept this key after its rounds. So a refusal shows that no round was
    // computed.
    const key = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: '' }).toString();
    await expectRefused(withKey(changed(key)), /does not parse without a password/);
  });

  test('a client key is refused if it is so long that a handshake would take seconds', async () => {
    // Two Mersenne primes.
    const [p, q] = [2n ** 9_689n - 1n, 2n ** 9_941n - 1n];
    const [e, d] = [65_537n, inverseOf(65_537n, (p - 1n) * (q - 1n))];
    const parts = { n: p * q, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverseOf(q, p) };
    const texts = Object.entries(parts).map(([name, value]) => [name, base64Url(value)]);
    const jwk = { kty: 'RSA', ...Object.fromEntries(texts) };
    const key = createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }).toString();
    await expectRefused(withKey(key), /with a key of 19630 bits/);
  });
});

/** Returns the number whose product with `value` is 1 modulo `modulus`, by the extended algorithm of Euclid. */
function inverseOf(value: bigint, modulus: bigint): bigint {
  let [rest, next, factor, nextFactor] = [modulus, value, 0n, 1n];
  while (next !== 0n) {
    const quotient = rest / next;
    [rest, next] = [next, rest - quotient * next];
    [factor, nextFactor] = [nextFactor, factor - quotient * nextFactor];
  }
  return ((factor % modulus) + modulus) % modulus;
}

function base64Url(value: bigint): string {
  const hex = value.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url');
}
