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
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { failure } from '../support/api-fault-server.ts';
import { aDispatchWorld } from '../support/dispatch-world.ts';
import { fakeAws, issuedToken } from '../support/fake-aws.ts';
import { type MisbehavingCluster, startMisbehavingCluster, TOKEN } from '../support/misbehaving-cluster.ts';

const ROLE_KEY = 'role-secret-key';
const clientPair = makeAuthority('the authority of users').issue(['kube-bootstrap-controller']);
const HANDLERS = Object.values(LOOP_HANDLERS);

let lines: string[] = [];
let cluster: MisbehavingCluster;

beforeEach(async () => {
  lines = [];
  const keep = (chunk: unknown) => {
    lines.push(String(chunk));
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(keep);
  jest.spyOn(process.stderr, 'write').mockImplementation(keep);
  cluster = await startMisbehavingCluster();
  afterThisTest(cluster.stop);
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Returns a kubeconfig in YAML with a token and a client key. */
function kubeconfig(fields: object = {}): string {
  const pair = { 'client-certificate-data': inBase64(clientPair.cert), 'client-key-data': inBase64(clientPair.key) };
  return stringify(JSON.parse(cluster.kubeconfig({ user: pair, cluster: fields })));
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
    [
      'of-web-identity',
      { webIdentity: { server: origin, certificateAuthorityData: cluster.certificateAuthorityData } },
    ],
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
  const replies = objects.map((path) => cluster.standIn.handle({ method: 'GET', path, headers: {} }));
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
    const written = await everythingWritten(kubeconfig());
    expectNoSecret(written);
    expect(written).toContain('"failed":0');
  });

  test('no output contains a credential if the API server refuses the token', async () => {
    cluster.misbehaveAlways(() => failure(401, 'Unauthorized', 'no'));
    const written = await everythingWritten(kubeconfig());
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
    cluster.misbehaveAlways(({ headers }) => ({ status, body: reply(String(headers['authorization'] ?? '')) }));
    const written = await everythingWritten(kubeconfig());
    expectNoSecret(written);
    expect(written).not.toContain(TOKEN.slice(0, 12));
  });

  test.each([
    ['the API server is unreachable', { server: 'https://127.0.0.1:1' }, 'ECONNREFUSED'],
    [
      'the certificate of the API server is of another CA',
      { 'certificate-authority-data': inBase64(makeAuthority('another authority').ca) },
      'TlsFailure',
    ],
  ])('no output contains a credential if %s', async (_, fields, error) => {
    const written = await everythingWritten(kubeconfig(fields));
    expectNoSecret(written);
    expect(written).toContain(error);
  });

  test.each([
    ['is not YAML', () => `users:\n  - user: { token: ${TOKEN}\n- :`],
    ['is only the token', () => TOKEN],
    ['is JSON but not a kubeconfig', () => JSON.stringify({ token: TOKEN, users: [{ user: { token: TOKEN } }] })],
    [
      'has a user with a credential plugin',
      () => kubeconfig().replace('token:', 'exec: { command: aws }\n      token:'),
    ],
    [
      'names a context that does not exist',
      () => kubeconfig().replace('current-context: there', 'current-context: none'),
    ],
  ])('no output contains a credential if the stored kubeconfig %s', async (_title, secret) => {
    const written = await everythingWritten(secret());
    expectNoSecret(written);
    expect(written).toContain('BadKubeconfig');
  });
});
