import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { stringify } from 'yaml';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { deregistration } from '../../lib/dispatch/deregistration.ts';
import { doctor } from '../../lib/doctor/doctor.ts';
import { ClusterConnections } from '../../lib/environment/cluster-connections.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { powertoolsTelemetry } from '../../lib/telemetry/powertools.ts';
import { LOOP_HANDLERS } from '../../local/loop-handlers.ts';
import { type CertifiedKey, makeAuthority } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { fakeAws, issuedToken } from '../support/fake-aws.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { readyStandIn } from '../support/stand-in.ts';

/**
 * A token that does not look like a credential. No mask by pattern hides it, so the test finds it wherever the code writes it.
 */
const TOKEN = 'plain-words-that-open-the-door';
const ROLE_KEY = 'role-secret-key';
const authority = makeAuthority('the authority of this test');
const clientPair = authority.issue(['kube-bootstrap-controller']);
const serverPair = authority.issue(['127.0.0.1']);
const HANDLERS = Object.values(LOOP_HANDLERS);

let lines: string[] = [];
let standIn: StandInApiServer;

beforeEach(async () => {
  lines = [];
  const keep = (chunk: unknown) => {
    lines.push(String(chunk));
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(keep);
  jest.spyOn(process.stderr, 'write').mockImplementation(keep);
  standIn = await readyStandIn();
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Starts a server that passes each request to the stand-in, unless `spoil` returns a reply. */
async function startServer(
  pair: CertifiedKey,
  spoil?: (authorization: string) => { status: number; body: string } | undefined,
) {
  const server = await startFaultServer(async ({ method, path, headers, body }) => {
    const spoilt = spoil?.(String(headers['authorization'] ?? ''));
    if (spoilt !== undefined) return { ...spoilt, headers: { 'content-type': 'application/json' } };
    const text = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    return standIn.handle({ method, path, headers: text, body });
  }, pair);
  afterThisTest(server.stop);
  return server.url;
}

function kubeconfigFor(url: string): string {
  const user = {
    token: TOKEN,
    'client-certificate-data': inBase64(clientPair.cert),
    'client-key-data': inBase64(clientPair.key),
  };
  return stringify(JSON.parse(kubeconfigTo(url, { ca: authority.ca, user })));
}

const inBase64 = (pem: string) => Buffer.from(pem).toString('base64');

/**
 * Runs every loop twice, a deregistration and the doctor. Returns everything that they logged, answered and wrote, as one string.
 */
async function everythingWritten(secret: string): Promise<string> {
  await fakeAws(({ action }) => {
    if (action === 'GetWebIdentityToken') return issuedToken(TOKEN);
    return action === 'AmazonSSM.GetParameter'
      ? { body: { Parameter: { Value: secret } } }
      : { body: { SecretString: secret } };
  });
  const loadKubeconfig = kubeconfigLoader('/', kubeconfigSources());
  const connections = new ClusterConnections({ nowMs: Date.now, loadKubeconfig, sleep: async () => undefined });
  const connect: Environment['connect'] = (spec, options) => connections.connect(spec, options);
  const { environment, table, register } = aDispatchWorld({ startDeadline, telemetry: powertoolsTelemetry, connect });
  const origin = /server: (\S+)/.exec(secret)?.[1] ?? 'https://127.0.0.1:1';
  const probe = { url: `${origin}/readyz`, authenticate: true };
  const apiServers = [aServer('10.9.8.7', probe), aServer('10.9.8.8', probe)];
  for (const [name, kubeconfig] of [
    ['of-secrets-manager', { secretsManager: 'kbc/demo' }],
    ['of-parameter-store', { ssm: '/kbc/demo' }],
    ['of-web-identity', { webIdentity: { server: origin, certificateAuthorityData: inBase64(authority.ca) } }],
  ] as const) {
    await register({ name, kubeconfig, apiServers });
  }
  const context = { getRemainingTimeInMillis: () => 25_000, environment };
  const answers: unknown[] = [];
  for (const handler of [...HANDLERS, ...HANDLERS]) answers.push(await handler({ force: true }, context));
  answers.push(await deregistration()({ cluster: 'of-parameter-store', address: '10.9.8.7' }, context));
  const look = doctor(() => ({ loadKubeconfig }));
  answers.push(await look({}, context));
  await connections.close();
  const partitions = ['#clusters', '#doctor', 'of-secrets-manager', 'of-parameter-store', 'of-web-identity'];
  const items = (await Promise.all(partitions.map((partition) => table.list(partition, '')))).flat();
  const objects = ['/api/v1/namespaces', '/api/v1/services', '/api/v1/endpoints', '/apis/events.k8s.io/v1/events'];
  const replies = objects.map((path) => standIn.handle({ method: 'GET', path, headers: {} }));
  expect(lines.length).toBeGreaterThan(2 * HANDLERS.length);
  expect(items.length).toBeGreaterThan(2);
  return [...lines, JSON.stringify(answers), JSON.stringify(items), JSON.stringify(await Promise.all(replies))].join(
    '\n',
  );
}

const secrets = [
  TOKEN,
  Buffer.from(TOKEN).toString('base64'),
  ...clientPair.key.split('\n').filter((line) => line.length > 40),
  Buffer.from(clientPair.key).toString('base64').slice(40, 80),
  'own-secret-key',
  ROLE_KEY,
];

function expectNoSecret(written: string): void {
  expect(secrets.filter((secret) => written.includes(secret))).toEqual([]);
}

describe('no log line, record, answer or table item contains a credential', () => {
  test('no output contains a credential if passes succeed', async () => {
    const written = await everythingWritten(kubeconfigFor(await startServer(serverPair)));
    expectNoSecret(written);
    expect(written).toContain('"failed":0');
  });

  test('no output contains a credential if the API server refuses the token', async () => {
    const body = JSON.stringify({ kind: 'Status', apiVersion: 'v1', code: 401, reason: 'Unauthorized', message: 'no' });
    const written = await everythingWritten(
      kubeconfigFor(await startServer(serverPair, () => ({ status: 401, body }))),
    );
    expectNoSecret(written);
    expect(written).toContain('Unauthorized');
  });

  test.each([
    [
      'refuses the token and repeats it',
      403,
      (said: string) => ({ kind: 'Status', reason: 'Forbidden', message: said }),
    ],
    ['returns the token as the kind of an object', 200, (said: string) => ({ kind: said, apiVersion: said })],
    [
      'repeats the token at the position where long messages are cut off',
      500,
      (said: string) => ({ kind: 'Status', message: `${'x'.repeat(275)}${said}` }),
    ],
  ])('no output contains a credential if the API server %s', async (_, status, reply) => {
    const spoil = (authorization: string) => ({ status, body: JSON.stringify(reply(authorization)) });
    const written = await everythingWritten(kubeconfigFor(await startServer(serverPair, spoil)));
    expectNoSecret(written);
    expect(written).not.toContain(TOKEN.slice(0, 12));
  });

  test('no output contains a credential if the API server is unreachable', async () => {
    const written = await everythingWritten(kubeconfigFor('https://127.0.0.1:1'));
    expectNoSecret(written);
    expect(written).toContain('ECONNREFUSED');
  });

  test('no output contains a credential if the certificate of the API server is of another CA', async () => {
    const other = makeAuthority('another authority').issue(['127.0.0.1']);
    const written = await everythingWritten(kubeconfigFor(await startServer(other)));
    expectNoSecret(written);
    expect(written).toContain('TlsFailure');
  });

  test.each([
    ['is not YAML', `users:\n  - user: { token: ${TOKEN}\n- :`],
    ['is only the token', TOKEN],
    ['is JSON but not a kubeconfig', JSON.stringify({ token: TOKEN, users: [{ user: { token: TOKEN } }] })],
    [
      'has a user with a credential plugin',
      kubeconfigFor('https://127.0.0.1:1').replace('token:', 'exec: { command: aws }\n      token:'),
    ],
    [
      'names a context that does not exist',
      kubeconfigFor('https://127.0.0.1:1').replace('current-context: there', 'current-context: none'),
    ],
  ])('no output contains a credential if the stored kubeconfig %s', async (_title, secret) => {
    const written = await everythingWritten(secret);
    expectNoSecret(written);
    expect(written).toContain('BadKubeconfig');
  });
});
