import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LOOPS, type Loop } from '../../lib/cluster/cluster-spec.ts';
import { makeAuthority } from '../../local/stand-in/identity.ts';
import { failure } from '../support/api-fault-server.ts';
import { TOKEN } from '../support/misbehaving-cluster.ts';
import { aMisbehavingWorld, type MisbehavingWorld } from '../support/misbehaving-world.ts';

let world: MisbehavingWorld;

beforeEach(async () => {
  world = await aMisbehavingWorld();
});

afterEach(async () => {
  expect(await world.told()).not.toContain(TOKEN);
  await world.close();
});

interface Misfortune {
  readonly when: string;
  readonly happens: (world: MisbehavingWorld) => unknown;
  readonly code: string;
  /** What is wrong, and what to do. */
  readonly says: RegExp;
}

/** The pass fails and changes nothing; once all is mended, the next one does its work. */
async function expectFailureAndRecovery(loop: Loop, { happens, code, says }: Misfortune): Promise<void> {
  await happens(world);
  const before = await world.state();

  expect(await world.tick(loop)).toEqual({ passes: 1, failed: 1, skipped: 0 });

  expect(await world.record(loop)).toMatchObject({
    outcome: 'failed',
    failuresInARow: 1,
    error: { code, message: expect.stringMatching(says) },
  });
  expect(world.telemetry.lines[0]).toMatchObject({
    level: 'error',
    message: 'pass failed',
    fields: { cluster: 'demo', errors: expect.arrayContaining([expect.stringMatching(says)]) },
  });
  expect(world.telemetry.lines[0]?.fields['eventErrors']).toBeUndefined();
  expect(await world.state()).toEqual(before);

  await world.cluster.mend();
  expect(await world.tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
  expect(await world.record(loop)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
  expect(await world.state()).not.toEqual(before);
}

const somebodyElse = Buffer.from(makeAuthority('somebody else').ca).toString('base64');
const half = '{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[{"meta';

const KUBECONFIGS: readonly Misfortune[] = [
  {
    when: 'the kubeconfig is missing',
    happens: ({ cluster }) => cluster.writeKubeconfig(undefined),
    code: 'BadKubeconfig',
    says: /cannot be read \(ENOENT\)\. Name a file that exists/,
  },
  {
    when: 'the kubeconfig is not YAML',
    happens: ({ cluster }) => cluster.writeKubeconfig(`users:\n- user: {token: "${TOKEN}\n`),
    code: 'BadKubeconfig',
    says: /is not YAML \(line \d+.*Write it again/,
  },
  {
    when: 'the kubeconfig is another kind of file',
    happens: ({ cluster }) => cluster.writeKubeconfig(`token: ${TOKEN}`),
    code: 'BadKubeconfig',
    says: /is not a kubeconfig.*Name a file of kind Config/,
  },
  {
    when: 'the kubeconfig asks for a user that it does not have',
    happens: ({ cluster }) => cluster.writeKubeconfig(cluster.kubeconfig({ context: { user: 'nobody' } })),
    code: 'BadKubeconfig',
    says: /asks for user "nobody", which is not there\. Add it/,
  },
  {
    when: 'the kubeconfig points nowhere',
    happens: ({ cluster }) =>
      cluster.writeKubeconfig(cluster.kubeconfig({ cluster: { server: 'https://127.0.0.1:1' } })),
    code: 'Unavailable',
    says: /127\.0\.0\.1:1 could not be reached.*ECONNREFUSED.*Check.*the server URL in the kubeconfig/,
  },
  {
    when: 'the kubeconfig has the CA of another cluster',
    happens: ({ cluster }) =>
      cluster.writeKubeconfig(cluster.kubeconfig({ cluster: { 'certificate-authority-data': somebodyElse } })),
    code: 'TlsFailure',
    says: /certificate of .* was not accepted.*Put the CA of this cluster in the kubeconfig/,
  },
  {
    when: 'the credential is refused (401)',
    happens: ({ cluster }) => cluster.writeKubeconfig(cluster.kubeconfig({ user: { token: `${TOKEN}-of-yesterday` } })),
    code: 'Unauthorized',
    says: /answered 401.*credential in the kubeconfig has expired.*replace it/,
  },
];

const ANSWERS: readonly Misfortune[] = [
  {
    when: 'the user has no rights (403)',
    happens: ({ cluster }) => cluster.misbehave(() => failure(403, 'Forbidden', 'User "it" cannot do this')),
    code: 'Forbidden',
    says: /answered 403.*User "it" cannot do this\. Grant this to the user/,
  },
  {
    when: 'the API server asks for more patience than a pass has (429)',
    happens: ({ cluster }) =>
      cluster.misbehave(() => ({ status: 429, headers: { 'retry-after': '120' }, body: 'too many requests' })),
    code: 'Throttled',
    says: /answered 429.*a priority level of its own, or set longer intervals/,
  },
  {
    when: 'the API server fails (500)',
    happens: ({ cluster }) => cluster.misbehave(() => failure(500, 'InternalError', 'etcdserver: request timed out')),
    code: 'Unavailable',
    says: /answered 500.*etcdserver: request timed out.*check the API server and its etcd/,
  },
  {
    when: 'a proxy answers in its place and repeats the credential (502)',
    happens: ({ cluster }) => cluster.misbehave(() => ({ status: 502, body: `no upstream for Bearer ${TOKEN}` })),
    code: 'Unavailable',
    says: /answered 502.*no upstream for Bearer \*{8,}\./,
  },
  {
    when: 'a reply is cut off',
    happens: ({ cluster }) => cluster.misbehave(() => ({ cutOff: { items: ['x'.repeat(5_000)] } })),
    code: 'Unavailable',
    says: /could not be reached.*or the connection broke.*Check that it runs/,
  },
  {
    when: 'connections are dropped',
    happens: ({ cluster }) => cluster.misbehave(() => ({ reset: true })),
    code: 'Unavailable',
    says: /could not be reached.*or the connection broke.*Check that it runs/,
  },
  {
    when: 'a reply is half a JSON',
    happens: ({ cluster }) => cluster.misbehave(() => ({ body: half })),
    code: 'MalformedReply',
    says: /a Kubernetes API server does not send.*Check that the server URL in the kubeconfig is an API server/,
  },
  {
    when: 'a login page is answered',
    happens: ({ cluster }) =>
      cluster.misbehave(() => ({ headers: { 'content-type': 'text/html' }, body: '<html>Please log in</html>' })),
    code: 'MalformedReply',
    says: /a Kubernetes API server does not send.*Check that the server URL in the kubeconfig is an API server/,
  },
  {
    when: 'a reply is of another kind',
    happens: ({ cluster }) =>
      cluster.misbehave(() => ({
        body: { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '9' }, items: [] },
      })),
    code: 'MalformedReply',
    says: /a Kubernetes API server does not send/,
  },
  {
    when: 'the API server hangs until the time of the pass is over',
    happens: ({ cluster, runOut }) => {
      let asked = false;
      cluster.misbehave(() => {
        if (!asked) runOut();
        asked = true;
        return { hang: true };
      });
    },
    code: 'DeadlineExceeded',
    says: /time of the pass ran out before https.* answered "(get|list) .*The next pass tries again.*check it/,
  },
];

describe.each(LOOPS)('a pass of %s fails, changes nothing and lets the next one go on', (loop) => {
  test.each([...KUBECONFIGS, ...ANSWERS])('when $when', (misfortune) => expectFailureAndRecovery(loop, misfortune));
});

test.each(LOOPS)('a pass of %s waits as long as a 429 requires, and then does its work', async (loop) => {
  let refused = 0;
  world.cluster.misbehave(() => {
    refused += 1;
    return refused > 1 ? undefined : { status: 429, headers: { 'retry-after': '3' }, body: 'slow down' };
  });
  expect(await world.tick(loop)).toEqual({ passes: 1, failed: 0, skipped: 0 });
  expect(world.waitsMs).toEqual([3_000]);
});
