import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { LONGEST_TOKEN } from '../../lib/cluster/bounds.ts';
import { loadKubeconfigFile, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SECRET = 'a-file-of-the-function';
const folder = temporaryFolder();
let proof: string;
let secretFile: string;

beforeAll(async () => {
  proof = join(folder, 'executed');
  secretFile = join(folder, 'secret');
  await writeFile(secretFile, SECRET);
});

function kubeconfig(users: readonly object[], cluster: object = {}): string {
  return stringify({
    clusters: [{ name: 'one', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'admin' } }],
    'current-context': 'here',
    users,
  });
}

const admin = (user: object) => [{ name: 'admin', user }];
const touch = () => ({ command: '/bin/sh', args: ['-c', `echo pwned > ${proof}; echo '{"status":{"token":"x"}}'`] });

describe('a stored kubeconfig cannot execute a command or read a file', () => {
  const provider = (name: string, config?: object) => admin({ 'auth-provider': { name, ...(config && { config }) } });
  test.each<[string, () => readonly object[]]>([
    ['exec', () => admin({ exec: touch() })],
    ['exec beside an auth provider', () => admin({ exec: touch(), 'auth-provider': { name: 'tokenFile' } })],
    ['exec beside a token', () => admin({ exec: touch(), token: 'x' })],
    ['exec in the configuration of an auth provider', () => provider('tokenFile', { exec: touch() })],
    ['an auth provider with the name exec', () => provider('exec', { exec: touch() })],
    [
      'the command of an auth provider',
      () => provider('gcp', { 'cmd-path': '/bin/sh', 'cmd-args': `-c "touch ${proof}"` }),
    ],
    ['a token file of an auth provider', () => provider('tokenFile', { tokenFile: secretFile })],
    ['the unknown field token-file', () => admin({ 'token-file': secretFile })],
    ['the field tokenFile', () => admin({ tokenFile: secretFile })],
    ['a duplicate user that has exec', () => [...admin({ token: 'x' }), ...admin({ exec: touch() })]],
    ['exec in a user that is not used', () => [...admin({ token: 'x' }), { name: 'other', user: { exec: touch() } }]],
  ])('a stored kubeconfig is refused with %s', async (_, users) => {
    const outcome: unknown = await parseKubeconfig(kubeconfig(users()), 'of a tenant').then(
      (access) => access.authHeaders(),
      (error: unknown) => error,
    );
    expect(existsSync(proof)).toBe(false);
    expect(inspect(outcome, { depth: 9 })).not.toContain(SECRET);
    expect(outcome).toMatchObject({ code: 'BadKubeconfig' });
  });

  test('duplicate keys and merge keys in YAML do not hide a command from the check', async () => {
    const twice = kubeconfig(admin({ exec: null })).replace('exec: null', 'exec: null\n      exec: {command: /bin/sh}');
    await expect(parseKubeconfig(twice, 'of a tenant')).rejects.toMatchObject({ code: 'BadKubeconfig' });
    const inherited = kubeconfig(admin({ '<<': { exec: touch() } }));
    await expect(parseKubeconfig(inherited, 'of a tenant')).rejects.toMatchObject({ code: 'BadKubeconfig' });
  });
});

describe('a kubeconfig that wastes time or memory, such as a YAML bomb or a huge key, is refused with a short message', () => {
  const bomb = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]`);
  test.each([
    ['aliases that multiply', ['a0: &a0 [x]', ...bomb, kubeconfig(admin({ token: '*a9' }))].join('\n')],
    ['deep nesting', `clusters: ${'['.repeat(20_000)}`],
    ['65 KiB of text', `${kubeconfig(admin({ token: 'x' }))}# ${'x'.repeat(65 * 1024)}`],
    ['7,000 keys', Array.from({ length: 7_000 }, (_, key) => `k${key}: 1`).join('\n')],
  ])('a kubeconfig with %s is refused with a short message', async (_, text) => {
    const error: unknown = await parseKubeconfig(text, 'of a tenant').catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringMatching(/^kubeconfig of a tenant: .+\. .+\.$/),
    });
    expect(String(error).length).toBeLessThan(600);
  });

  test('a kubeconfig with 64 KB of punctuation is refused without parsing', async () => {
    await expect(parseKubeconfig(':\n'.repeat(32_000), 'of a tenant')).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringContaining('has more than 8000 line breaks and punctuation marks'),
    });
  });

  test.each([
    ['with a password and any number of rounds', (key: string) => key],
    ['with a password that is labelled as a plain key', (key: string) => key.replaceAll('ENCRYPTED ', '')],
  ])('a client key %s is refused before a round is computed', async (_, changed) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    // TLS tries the empty password by default, so a refusal proves that no round was computed.
    const key = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: '' }).toString();
    const data = { 'client-key-data': Buffer.from(changed(key)).toString('base64') };
    await expect(parseKubeconfig(kubeconfig(admin(data)), 'of a tenant')).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringContaining('does not parse without a password'),
    });
  });

  test('a client key that would slow down a handshake by seconds is refused', async () => {
    const number = (bytes: number) => Buffer.alloc(bytes, 0xff).toString('base64url');
    const [whole, half] = [number(2048), number(1024)];
    const jwk = { kty: 'RSA', n: whole, e: 'AQAB', d: whole, p: half, q: half, dp: half, dq: half, qi: half };
    const key = createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }).toString();
    const data = { 'client-key-data': Buffer.from(key).toString('base64') };
    await expect(parseKubeconfig(kubeconfig(admin(data)), 'of a tenant')).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringContaining('its client key has 16384 bits'),
    });
  });

  test('an endless file is refused', async () => {
    await expect(loadKubeconfigFile('/dev/zero')).rejects.toMatchObject({
      code: 'BadKubeconfig',
      message: expect.stringContaining('is longer than'),
    });
  });
});

describe('a credential that no HTTP header can carry, such as a token with a newline, is refused', () => {
  test.each([
    ['a token of two lines', `${SECRET}\nX-Remote-User: admin`, /user "admin".*line break/],
    ['a token with a space', `${SECRET} x`, /user "admin".*line break/],
    ['a token of more than 4 KB', SECRET.padEnd(LONGEST_TOKEN + 1, 'x'), /user "admin" has more than 4096 characters/],
  ])('a kubeconfig with %s is refused without quoting it', async (_, token, message) => {
    const error: unknown = await parseKubeconfig(kubeconfig(admin({ token })), 'of a tenant').catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'BadKubeconfig', message: expect.stringMatching(message) });
    expect(inspect(error, { depth: 9 })).not.toContain(SECRET);
  });

  test('a token file of two lines is refused', async () => {
    const file = join(folder, 'two-lines');
    await writeFile(file, `${SECRET}\nsecond\n`);
    const config = join(folder, 'config');
    await writeFile(config, kubeconfig(admin({ tokenFile: file })));
    await expect(loadKubeconfigFile(config)).rejects.toMatchObject({ code: 'BadKubeconfig' });
  });

  test('the line break at the end of a token file is not part of the token', async () => {
    const access = await parseKubeconfig(kubeconfig(admin({ token: 'abc\n' })), 'of a tenant');
    await expect(access.authHeaders()).resolves.toEqual({ Authorization: 'Bearer abc' });
  });
});
