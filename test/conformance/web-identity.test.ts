import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { parse, stringify } from 'yaml';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { ClusterConnections } from '../../lib/runtime/cluster-connections.ts';
import type { WebIdentity } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readCluster } from '../../lib/table/clusters.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { startFaultServer } from '../support/api-fault-server.ts';
import { type KubeApiserver, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { issuedToken, startFakeAws } from '../support/fake-aws.ts';
import { CLUSTER, runAllLoops, startHandlers } from '../support/handlers.ts';
import { readInRepository } from '../support/repository.ts';
import { running } from '../support/running.ts';
import { freePort } from '../support/server-process.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROLE = 'arn:aws:iam::123456789012:role/kbc-prod-eu-west-1-kubernetes-service';

const etcd = running(startEtcd);
let apiserver: KubeApiserver;
let webIdentity: WebIdentity;
/** The claims of the tokens that AWS STS signs. The requested audience is added if there is no `aud`. */
let claims: () => { readonly sub: string; readonly exp: number; readonly aud?: string };
const aws = running(() =>
  startFakeAws(({ body }) => issuedToken(issuer.sign({ aud: String(body['Audience.member.1']), ...claims() }))),
);
const issuer = running(startTokenIssuer);

const nowSeconds = () => Math.floor(Date.now() / 1000);

/** Returns the configuration file of docs/kubeconfig-secret.md for this issuer and API server. */
function authenticationConfiguration(audience: string): string {
  const page = readInRepository('docs/kubeconfig-secret.md');
  const block = /```yaml\n( +apiVersion: apiserver\.config\.k8s\.io\/v1\n.*?)```/s.exec(page)?.[1] ?? '';
  const configuration = parse(block);
  configuration.jwt[0].issuer = { url: issuer.url, audiences: [audience], certificateAuthority: issuer.ca };
  return stringify(configuration);
}

beforeAll(async () => {
  const port = await freePort('127.0.0.1');
  const server = `https://127.0.0.1:${port}`;
  const file = join(temporaryFolder(), 'authentication.yaml');
  writeFileSync(file, authenticationConfiguration(server));
  apiserver = await startKubeApiserver({ etcd, port, hooksOff: true, extraArgs: [`--authentication-config=${file}`] });
  await apiserver.request('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  await applyShippedRbac(apiserver);
  webIdentity = { server, certificateAuthorityData: Buffer.from(apiserver.ca).toString('base64') };
});

test('an API server with --authentication-config for AWS STS accepts tokens of the functions as the service account of deploy/rbac.yaml', async () => {
  claims = () => ({ sub: ROLE, exp: nowSeconds() + 300 });
  const probe = { url: `${apiserver.url}/readyz`, authenticate: true };
  // The rules of a spec refuse a server on this machine, so the test registers it without these rules.
  const handlers = await startHandlers({
    spec: { kubeconfig: { ssm: '/kbc/demo' }, apiServers: [{ address: '10.9.8.7', probe }] },
  });
  const { spec } = (await readCluster(handlers.table, CLUSTER)) ?? {};
  if (spec !== undefined) await registerCluster(handlers.table, { ...spec, kubeconfig: { webIdentity } });
  const passes = await runAllLoops(handlers);
  await handlers.close();

  expect(passes.flatMap(({ errors }) => errors)).toEqual([]);
  expect(passes.flatMap(({ changes }) => changes)).toContain('created endpoints default/kubernetes: 10.9.8.7');
  // A process requests one token for each cluster, not for each pass or request.
  expect(aws.calls.map(({ action }) => action)).toEqual(['GetWebIdentityToken']);
});

test('an API server with --authentication-config for AWS STS refuses an expired token, and a call a minute later uses a new token', async () => {
  const clock = { nowMs: 0 };
  const get = getOver(() => clock.nowMs);
  claims = () => ({ sub: ROLE, exp: nowSeconds() - 60 });
  await expect(get()).rejects.toMatchObject({ code: 'Unauthorized' });

  claims = () => ({ sub: ROLE, exp: nowSeconds() + 300 });
  clock.nowMs += 60_000;

  expect(await get()).toMatchObject({ metadata: { name: 'kubernetes' } });
});

test.each([
  ['for another audience', { sub: ROLE, aud: 'https://203.0.113.99:6443' }],
  ['of a role of another stack', { sub: 'arn:aws:iam::123456789012:role/admin' }],
  ['of a role of another account', { sub: ROLE.replace('123456789012', '210987654321') }],
])('an API server with --authentication-config for AWS STS refuses a token %s', async (_, refused) => {
  claims = () => ({ exp: nowSeconds() + 300, ...refused });
  await expect(getOver(Date.now)()).rejects.toMatchObject({
    code: 'Unauthorized',
    message: expect.stringContaining(
      "With webIdentity, the AuthenticationConfiguration of the API server must accept the token's issuer, audience and role.",
    ),
  });
});

/** Returns a function that gets the kubernetes Service over the connections of one process. */
function getOver(nowMs: () => number) {
  const clusters = new ClusterConnections({ nowMs, loadKubeconfig: kubeconfigLoader('.', kubeconfigSources()) });
  afterThisTest(() => clusters.close());
  const { signal } = new AbortController();
  return async () => {
    const options = { loop: 'kubernetes-service', signal, warn: () => {} } as const;
    const { kubernetes } = await clusters.connect(aClusterSpec({ kubeconfig: { webIdentity } }), options);
    return kubernetes.get({ kind: 'Service', namespace: 'default', name: 'kubernetes' });
  };
}

/** Starts a token issuer as an AWS account has it, with OIDC discovery, public keys and tokens like those of AWS STS. */
async function startTokenIssuer() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const { ca, issue } = makeAuthority('token issuer');
  const kid = randomUUID();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'ES384' };
  const discovery = (issuer: string) => ({
    issuer,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES384'],
  });
  const { url, stop } = await startFaultServer(
    ({ path, headers }) => ({
      body: path === '/.well-known/openid-configuration' ? discovery(`https://${headers['host']}`) : { keys: [jwk] },
    }),
    issue(['127.0.0.1']),
  );
  return {
    url,
    /** The certificate of the issuer's own CA, as PEM. */
    ca,
    sign: (claims: { readonly exp: number }) => {
      const all = { iss: url, iat: claims.exp - 300, jti: randomUUID(), ...claims };
      const text = [{ alg: 'ES384', kid, typ: 'JWT' }, all].map(encoded).join('.');
      const signature = sign('sha384', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${text}.${signature.toString('base64url')}`;
    },
    close: stop,
  };
}

function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
