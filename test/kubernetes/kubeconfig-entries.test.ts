import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { stringify } from 'yaml';
import { loadKubeconfigFile, parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { type PluginTerminal, pluginRunner } from '../../local/kubeconfig-plugins.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { accessTo, proberWith, textOf, transportWith } from '../support/transport-to.ts';

const SERVER = 'https://10.0.0.1:6443';
const { signal } = new AbortController();
const authority = makeAuthority('the CA of a test');
const other = makeAuthority('another CA');
const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');

function kubeconfig(cluster: object = {}, user: object = {}, more: object = {}): string {
  return stringify({
    clusters: [{ name: 'c', cluster: { server: SERVER, ...cluster } }],
    users: [{ name: 'u', user: { token: 'x', ...user } }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'here',
    ...more,
  });
}

const accessOf = (text: string) => parseKubeconfig(text, 'of a test');

test('unknown fields of a kubeconfig are ignored, and their names are returned', async () => {
  const text = kubeconfig({ 'api-version': 'v1' }, { id: 'a' }, { organisation: 'x', 'not a name: secret': 1 });
  const ignored = ['kubeconfig.organisation', 'kubeconfig.(a key)', 'cluster.api-version', 'user.id'];
  await expect(accessOf(text)).resolves.toMatchObject({ ignored });
});

const [mine, theirs] = [authority.issue(['a-user']), authority.issue(['a-user'])];
const certificate = { 'client-certificate-data': base64(mine.cert) };
const otherKey = { ...certificate, 'client-key-data': base64(theirs.key) };
const withCa = (data: string) => ({ 'certificate-authority-data': data });
const der = authority.ca.replace(/-----.*?-----|\n/g, '');
const sameUser = [{}, { token: 'x' }].map((user) => ({ name: 'u', user }));
test.each<[string, object, object, object, RegExp]>([
  ['a certificate without its key', {}, certificate, {}, /client certificate without its key/],
  ['a certificate with another key', {}, otherKey, {}, /does not belong to its key/],
  ['a CA in DER', withCa(der), {}, {}, /no PEM certificate/],
  ['a CA that is not base64', withCa(`${base64(authority.ca)} !`), {}, {}, /not base64/],
  ['two users of its name', {}, {}, { users: sameUser }, /two entries for user "u"/],
  ['an octal server', { server: 'https://010.0.0.1' }, {}, {}, /not the URL of an API server/],
  ['a merge key', {}, { '<<': { as: 'admin' } }, {}, /has a YAML merge key \(<<\) \(line \d+\)/],
  ['another kind', {}, {}, { kind: 'Secret' }, /is a Secret.*base64 --decode/],
  ['another version', {}, {}, { apiVersion: 'v2' }, /not of kind Config/],
])('a kubeconfig with %s is refused', async (_, cluster, user, more, message) => {
  const refused = { code: 'BadKubeconfig', message: expect.stringMatching(message) };
  await expect(accessOf(kubeconfig(cluster, user, more))).rejects.toMatchObject(refused);
});

test.each([
  ['base64 of a kubeconfig', base64(kubeconfig()), /is base64.*Decode it/],
  ['a second document', `${kubeconfig()}---\n${kubeconfig()}`, /second YAML document/],
  ['a key twice', `${kubeconfig()}current-context: there\n`, /key twice \(line \d+\)/],
  ['an unknown tag', kubeconfig().replace('token: x', 'token: !secret x'), /YAML tag/],
  ['UTF-16 that was read as UTF-8', Buffer.from(kubeconfig(), 'utf16le').toString(), /probably UTF-16/],
])('the error for a text with %s states the problem', async (_, text, message) => {
  await expect(accessOf(text)).rejects.toMatchObject({ message: expect.stringMatching(message) });
});

const served = authority.issue(['127.0.0.1']);
const impostor = other.issue(['127.0.0.1']);
const NO_CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const TRUSTED = { status: 200, kind: 'status' };
const REFUSED = { status: 'refused', kind: 'tlsFailure' };

async function answersOf(identity: typeof served, ca: string) {
  const { url, close } = await serve((_, response) => response.end('ok'), identity);
  afterThisTest(close);
  const access = await accessTo(url, { ca });
  const request = transportWith(access)({ method: 'GET', path: '/', headers: {} }, signal);
  const status = await request.then(
    async ({ status, body }) => ((await textOf(body)) === 'ok' ? status : 'another body'),
    () => 'refused',
  );
  const { kind } = await proberWith(access)({ url: `${url}/readyz`, authenticate: false });
  return { status, kind };
}

test.each([
  ['its root', served, authority.ca, TRUSTED],
  ["the server's own certificate, without its root", served, served.cert, TRUSTED],
  ['a text that is no certificate, and its root', served, NO_CERTIFICATE + authority.ca, TRUSTED],
  ['another root', served, other.ca, REFUSED],
  ['the certificate of another server of its authority', served, authority.issue(['127.0.0.1']).cert, REFUSED],
  ['the certificate of the server, while another authority serves', impostor, served.cert, REFUSED],
])('requests and probes verify servers with the CA of the kubeconfig: %s', async (_, identity, ca, outcome) => {
  await expect(answersOf(identity, ca)).resolves.toEqual(outcome);
});

const folder = temporaryFolder();
const V1 = 'client.authentication.k8s.io/v1';
const reply = (status: object | undefined) => JSON.stringify({ apiVersion: V1, kind: 'ExecCredential', status });
const node = (script: string) => ({ command: process.execPath, args: ['-e', script], interactiveMode: 'Never' });
const quiet: PluginTerminal = { signal, say: () => undefined };

async function load(exec: object, cluster: object = {}, user: object = {}, terminal = quiet) {
  const file = join(folder, 'config');
  await writeFile(file, kubeconfig(cluster, { token: null, exec: { apiVersion: V1, ...exec }, ...user }));
  return loadKubeconfigFile(file, { runPlugin: pluginRunner(terminal) });
}

async function tokenOf(...of: Parameters<typeof load>): Promise<string> {
  return String((await (await load(...of)).authHeaders())['Authorization']);
}

test('the cluster that an exec plugin gets in KUBERNETES_EXEC_INFO contains the CA from a file and the extension for exec plugins', async () => {
  const script = `const { spec } = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
    const token = Buffer.from(JSON.stringify(spec)).toString('base64');
    console.log(JSON.stringify({ apiVersion: '${V1}', kind: 'ExecCredential', status: { token } }))`;
  await writeFile(join(folder, 'ca.crt'), authority.ca);
  const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } }];
  const cluster = { 'certificate-authority': 'ca.crt', 'tls-server-name': 'api', extensions };
  const [, spec = ''] = (await tokenOf({ ...node(script), provideClusterInfo: true }, cluster)).split(' ');
  const ca = { 'certificate-authority-data': base64(authority.ca) };
  const info = { server: SERVER, ...ca, 'tls-server-name': 'api', config: { audience: 'a' } };
  expect(JSON.parse(Buffer.from(spec, 'base64').toString())).toEqual({ interactive: false, cluster: info });
});

test('the relative path of an exec plugin begins at the folder of the kubeconfig, and the plugin gets the environment variables of its kubeconfig entry', async () => {
  const script = `#!/bin/sh\necho '${reply({ token: 'TOKEN' })}' | sed "s/TOKEN/$GREETING$EMPTY/"\n`;
  await writeFile(join(folder, 'plug.sh'), script, { mode: 0o755 });
  const env = [{ name: 'GREETING', value: 'hello' }, { name: 'EMPTY' }];
  await expect(tokenOf({ command: './plug.sh', env, interactiveMode: 'Never' })).resolves.toBe('Bearer hello');
});

test('the standard input of an exec plugin is empty', async () => {
  const script = `process.stdin.on('end', () => console.log('${reply({ token: 'x' })}')).resume()`;
  await expect(tokenOf({ ...node(script), interactiveMode: 'IfAvailable' })).resolves.toBe('Bearer x');
});

test('no exec plugin runs for a user with a token', async () => {
  await expect(tokenOf({ command: 'no-such-plugin' }, {}, { token: 'own' })).resolves.toBe('Bearer own');
});

test('an exec plugin runs again only when its credential has expired, and only once for simultaneous requests', async () => {
  const count = join(folder, 'count');
  const script = `const fs = require('fs'); fs.appendFileSync('${count}', '.');
    const token = String(fs.readFileSync('${count}').length);
    const expirationTimestamp = token === '1' ? '2020-01-01T00:00:00Z' : '2120-01-01T00:00:00Z';
    console.log(JSON.stringify({ apiVersion: '${V1}', kind: 'ExecCredential', status: { token, expirationTimestamp } }))`;
  const access = await load(node(script));
  const second = { Authorization: 'Bearer 2' };
  await expect(Promise.all([access.authHeaders(), access.authHeaders()])).resolves.toEqual([second, second]);
  await expect(access.authHeaders()).resolves.toEqual(second);
});

test('kbctl prints the name of an exec plugin while the plugin runs, and ends the plugin at Ctrl-C', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
  const [ended, lines] = [new AbortController(), [] as string[]];
  const started = join(folder, 'started');
  const script = `require('fs').writeFileSync('${started}', ''); setInterval(() => {}, 1000)`;
  const loading = load(node(script), {}, {}, { signal: ended.signal, say: (line) => void lines.push(line) });
  const refused = expect(loading).rejects.toThrow(/the plugin of its user failed: .* was ended by Ctrl-C/);
  while (!existsSync(started)) await new Promise(setImmediate);
  jest.runOnlyPendingTimers();
  jest.useRealTimers();
  expect(lines).toEqual([expect.stringMatching(/^waiting for the credential plugin .*node/)]);
  ended.abort();
  await refused;
});

const missing = { command: 'no-such-plugin', interactiveMode: 'Never', installHint: 'Get it from the portal' };
test.each<[string, object, RegExp]>([
  ['prints no status', node(`console.log('${reply(undefined)}')`), /has no status with a token/],
  ['prints no JSON', node("console.log('hello')"), /did not print an ExecCredential/],
  ['prints half a certificate', node(`console.log('${reply({ clientKeyData: 'x' })}')`), /only one of clientCert/],
  ['fails', node('process.exit(3)'), /ended with exit code 3/],
  ['does not exist', missing, /does not exist. Get it from the portal/],
  ['requires a terminal', { ...node(''), interactiveMode: 'Always' }, /needs a terminal/],
  ['has no interactive mode', { ...node(''), interactiveMode: '' }, /exec.interactiveMode is missing/],
  ['has an unknown version', { ...node(''), apiVersion: 'v0' }, /exec.apiVersion is missing or is not supported/],
])('the error for an exec plugin that %s states the problem', async (_, exec, message) => {
  const error = { code: 'BadKubeconfig', message: expect.stringMatching(message) };
  await expect(tokenOf(exec)).rejects.toMatchObject(error);
});
