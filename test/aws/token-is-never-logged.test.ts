import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { stringify } from 'yaml';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { doctor } from '../../lib/doctor/doctor.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { powertoolsTelemetry } from '../../lib/telemetry/powertools.ts';
import { LOOP_HANDLERS } from '../../local/clock-driven-runner.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
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

/** Runs every loop twice, a deregistration and the doctor. Returns all that they logged, answered and wrote, as one string. */
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
  const { certificateAuthorityData } = cluster;
  for (const [name, kubeconfig] of [
    ['of-secrets-manager', { secretsManager: 'kbc/demo' }],
    ['of-parameter-store', { ssm: '/kbc/demo' }],
    ['of-web-identity', { webIdentity: { server: origin, certificateAuthorityData } }],
  ] as const) {
    await register({ name, kubeconfig, apiServers });
  }
  const context = { getRemainingTimeInMillis: () => 25_000, environment };
  const answers: unknown[] = [];
  for (const handler of [...HANDLERS, ...HANDLERS]) answers.push(await handler({ force: true }, context));
  answers.push(await deregistration()({ cluster: 'of-parameter-store', address: '10.9.8.7' }, context));
  answers.push(await doctor({}, { ...context, environment: { ...environment, loadKubeconfig } }));
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

/** The credentials in every form in which they are sent or stored. Of the token, the beginning is enough. */
const secrets = [
  TOKEN.slice(0, 12),
  Buffer.from(TOKEN).toString('base64'),
  // The token after "me:".
  Buffer.from(TOKEN).toString('base64').slice(0, 12),
  ...clientPair.key.split('\n').filter((line) => line.length > 40),
  Buffer.from(clientPair.key).toString('base64').slice(40, 80),
  'own-secret-key',
  ROLE_KEY,
];

const FOREIGN_CA = { 'certificate-authority-data': inBase64(makeAuthority('another authority').ca) };
const UNAUTHORIZED = { kind: 'Status', reason: 'Unauthorized' };
const forbidden = (message: string) => ({ kind: 'Status', reason: 'Forbidden', message });

/** Makes the API server answer each request with a reply that contains the credential of the request. */
function repeating(status: number, reply: (said: string) => object): string {
  cluster.misbehaveAlways(({ headers }) => ({ status, body: reply(String(headers['authorization'] ?? '')) }));
  return kubeconfig();
}

describe('no log line, record, answer or table item contains a credential', () => {
  test.each<[string, () => string, string]>([
    ['passes succeed', () => kubeconfig(), '"failed":0'],
    ['the API server refuses the token', () => repeating(401, () => UNAUTHORIZED), 'Unauthorized'],
    ['the API server refuses the token and repeats it', () => repeating(403, forbidden), 'Forbidden'],
    [
      'the API server refuses the token and repeats it in base64, after a user name',
      () => repeating(403, (said) => forbidden(inBase64(`me:${said.replace('Bearer ', '')}`))),
      'Forbidden',
    ],
    ['the API server returns the token as a kind', () => repeating(200, (kind) => ({ kind })), 'MalformedReply'],
    [
      'the API server repeats the token at the position where long messages are cut off',
      () => repeating(500, (said) => ({ kind: 'Status', message: `${'x'.repeat(275)}${said}` })),
      'Unavailable',
    ],
    ['the API server is unreachable', () => kubeconfig({ server: 'https://127.0.0.1:1' }), 'ECONNREFUSED'],
    ['the certificate of the API server is of another CA', () => kubeconfig(FOREIGN_CA), 'TlsFailure'],
    ['the stored kubeconfig is not YAML', () => `users:\n  - user: { token: ${TOKEN}\n- :`, 'BadKubeconfig'],
    ['the stored kubeconfig is only the token', () => TOKEN, 'BadKubeconfig'],
    [
      'the stored kubeconfig has a plugin',
      () => kubeconfig().replace('token:', 'exec: { command: aws }\n      token:'),
      'BadKubeconfig',
    ],
    [
      'the stored kubeconfig has no such context',
      () => kubeconfig().replace('context: there', 'context: none'),
      'BadKubeconfig',
    ],
  ])('no output contains a credential if %s', async (_, secretOf, outcome) => {
    const written = await everythingWritten(secretOf());
    expect(secrets.filter((secret) => written.includes(secret))).toEqual([]);
    expect(written).toContain(outcome);
  });
});
