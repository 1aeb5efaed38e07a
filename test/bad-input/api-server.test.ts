import { beforeEach, describe, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { failure } from '../support/api-fault-server.ts';
import { type MisbehavingCluster, TOKEN } from '../support/misbehaving-cluster.ts';
import { aMisbehavingWorld, type MisbehavingWorld } from './misbehaving-world.ts';

let world: MisbehavingWorld;

beforeEach(async () => {
  world = await aMisbehavingWorld();
});

/** A fault, the function that causes it, the code of the failed pass, and a part of its message. */
type Misfortune = readonly [
  when: string,
  happens: (cluster: MisbehavingCluster) => unknown,
  code: string,
  pattern: RegExp,
];

const foreignCa = Buffer.from(makeAuthority('another cluster').ca).toString('base64');
const half = '{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[{"meta';
const kubeconfigWith = (cluster: MisbehavingCluster, fields: Parameters<MisbehavingCluster['kubeconfig']>[0]) =>
  cluster.writeKubeconfig(cluster.kubeconfig(fields));
const etcdTimeout = failure(500, 'InternalError', 'etcdserver: request timed out');

/** One fault of each kind. test/kubernetes has the others. */
const MISFORTUNES: readonly Misfortune[] = [
  ['the kubeconfig is missing', (cluster) => cluster.writeKubeconfig(undefined), 'BadKubeconfig', /ENOENT/],
  [
    'the kubeconfig points nowhere',
    // The certificate of the server at the probe URL is not for this address, so that no pass may use that server.
    (cluster) => kubeconfigWith(cluster, { cluster: { server: 'https://127.0.0.2:1' } }),
    'Unavailable',
    /ECONNREFUSED.*Check.*the server URL in the kubeconfig/,
  ],
  [
    'the kubeconfig has the CA of another cluster',
    (cluster) => kubeconfigWith(cluster, { cluster: { 'certificate-authority-data': foreignCa } }),
    'TlsFailure',
    /certificate of .* was not accepted.*Put the CA of this cluster in the kubeconfig/,
  ],
  [
    'the credential is refused (401)',
    (cluster) => kubeconfigWith(cluster, { user: { token: `${TOKEN}-of-yesterday` } }),
    'Unauthorized',
    /answered 401.*credential in the kubeconfig has expired/,
  ],
  ['the API server fails (500)', (cluster) => cluster.misbehave(() => etcdTimeout), 'Unavailable', /and its etcd/],
  [
    'a reply is half a JSON',
    (cluster) => cluster.misbehave(() => ({ body: half })),
    'MalformedReply',
    /unlike a Kubernetes/,
  ],
  [
    'the API server does not answer before the deadline of the pass',
    (cluster) => {
      let asked = false;
      cluster.misbehave(() => {
        if (!asked) world.expireDeadlines();
        asked = true;
        return { hang: true };
      });
    },
    'DeadlineExceeded',
    /https.* did not answer "(get|list) .*" before the deadline of the pass/,
  ],
];

describe.each(LOOPS)('a pass of %s that fails changes nothing, and the next pass succeeds', (loop) => {
  test.each(MISFORTUNES)(
    'a pass changes nothing, and the next one succeeds, if %s',
    async (_, happens, code, pattern) => {
      await happens(world.cluster);
      await world.expectFailedPass(loop, pattern);
      await world.expectFirstFailure(loop, code, pattern);
      await world.cluster.recover();
      await world.expectNextPass(loop);
    },
  );
});

/* Bodies that no API server sends with the status 200. */
test.each(['{}', 'ok', '<html>Welcome</html>', '{"kind":"Status","apiVersion":"v1","status":"Success"}', '[]', 'null'])(
  'passes fail and free or remove nothing if an API server answers each request with 200 and %s',
  async (body) => {
    for (const loop of LOOPS) expect(await world.tick(loop)).toMatchObject({ failed: 0 });
    const before = await world.state();
    expect(JSON.stringify(before)).toMatch(/10\.9\.8\.7.*ranges\/serviceips/);
    world.cluster.misbehave(() => ({ body }));
    for (let pass = 0; pass < 4; pass += 1) {
      for (const loop of LOOPS) expect(await world.tick(loop)).toMatchObject({ failed: 1 });
    }
    expect(await world.state()).toEqual(before);
  },
);
