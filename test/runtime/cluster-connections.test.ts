import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import type { ApiServerAccess } from '../../lib/kubernetes/kubeconfig.ts';
import { aClusterSpec } from '../support/a-cluster-spec.ts';
import { aProcess } from '../support/a-process.ts';
import { anAccess } from '../support/an-access.ts';
import { type FaultServer, failure, startFaultServer } from '../support/api-fault-server.ts';

const MINUTE = 60_000;
const NAMESPACE = { kind: 'Namespace', name: 'default' } as const;

/** An API server that accepts only the token `new`. */
let server: FaultServer;
beforeAll(async () => {
  const namespace = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'default', resourceVersion: '1' } };
  server = await startFaultServer(({ headers }) =>
    headers['authorization'] === 'new' ? { body: namespace } : failure(401, 'Unauthorized'),
  );
});
afterAll(() => server.stop());

const access = (overrides: Partial<ApiServerAccess> = {}) => anAccess({ server: server.url, ...overrides });
/** Returns a process whose kubeconfigs have no credential. */
const plain = () => aProcess(async () => access());

/** Returns the access of a kubeconfig whose token is valid from second 0 to second `exp`. */
function accessUntil(exp: number): ApiServerAccess {
  const token = `x.${Buffer.from(JSON.stringify({ iat: 0, exp })).toString('base64url')}.x`;
  return access({ authHeaders: async () => ({ Authorization: `Bearer ${token}` }) });
}

test.each([
  { kubeconfig: { ssm: '/x' }, keptMinutes: 6 * 60, how: 'six hours (at random four to eight), if it is in a store' },
  { kubeconfig: { file: 'x' }, keptMinutes: 5, how: 'five minutes, if it is in a file' },
])('passes use a kubeconfig without another read for $how', async ({ kubeconfig, keptMinutes }) => {
  const { clock, connect, reads } = plain();
  const spec = aClusterSpec({ kubeconfig });
  await connect(spec);
  clock.nowMs += (keptMinutes - 1) * MINUTE;
  await connect(spec);
  expect(reads()).toBe(1);
  clock.nowMs += MINUTE;
  await connect(spec);
  expect(reads()).toBe(2);
});

test('a kubeconfig whose credential expires soon is read every five minutes until the credential is renewed', async () => {
  const tokens = [90 * 60, 90 * 60, 10 * 90 * 60];
  const { clock, connect, reads } = aProcess(async () => accessUntil(tokens.shift() ?? 0));
  const spec = aClusterSpec({ kubeconfig: { ssm: '/x' } });
  const readsAt: number[] = [];
  for (const minutes of [0, 59, 61, 63, 66, 71, 90]) {
    clock.nowMs = minutes * MINUTE;
    await connect(spec);
    readsAt.push(reads());
  }
  expect(readsAt).toEqual([1, 1, 2, 2, 3, 3, 3]);
});

test('a process reads 16 kubeconfigs without a wait, and then 20 per second', async () => {
  const { clock, connect, sleeps, reads } = plain();
  const specs = Array.from({ length: 20 }, (_, index) =>
    aClusterSpec({ name: `c-${index}`, kubeconfig: { ssm: '/x' } }),
  );
  await Promise.all(specs.map((spec) => connect(spec)));
  expect([reads(), sleeps]).toEqual([20, [50, 100, 150, 200]]);
  clock.nowMs += MINUTE;
  await connect(aClusterSpec({ name: 'later', kubeconfig: { ssm: '/x' } }));
  expect(sleeps).toHaveLength(4);
});

test('for a minute after a throttled read, a process reads at most four kubeconfigs per second', async () => {
  const { clock, connect, sleeps } = aProcess(async ({ name }) => {
    if (name === 'first') throw new ClusterError('Throttled', 'too many reads');
    return access();
  });
  const of = (name: string) => aClusterSpec({ name, kubeconfig: { secretsManager: name } });
  await expect(connect(of('first'))).rejects.toMatchObject({ code: 'Throttled' });
  await connect(of('second'));
  await connect(of('third'));
  expect(sleeps).toEqual([250, 500]);
  clock.nowMs += MINUTE;
  await connect(of('fourth'));
  expect(sleeps).toHaveLength(2);
});

test('a read of a kubeconfig fails with the code Throttled if the read cannot begin before the deadline of the pass', async () => {
  const sleep = () => Promise.reject(new Error('the time of the pass is over'));
  const { connect } = aProcess(async () => access(), { sleep });
  const open = (index: number) => connect(aClusterSpec({ name: `c-${index}`, kubeconfig: { ssm: '/x' } }));
  for (let index = 0; index < 16; index += 1) await open(index);
  const message = expect.stringContaining('c-16 was not read in time');
  await expect(open(16)).rejects.toMatchObject({ code: 'Throttled', message });
});

test('a kubeconfig is read for each cluster, and again if the spec of a cluster names another context', async () => {
  const { connect, reads } = plain();
  await connect(aClusterSpec({ name: 'a' }));
  await connect(aClusterSpec({ name: 'b' }));
  await connect(aClusterSpec({ name: 'a', kubeconfig: { file: 'kubeconfig.yml', context: 'other' } }));
  expect(reads()).toBe(3);
});

test('if a read of a kubeconfig fails or never ends, the next pass reads the kubeconfig again', async () => {
  const failure = new ClusterError('BadKubeconfig', 'cannot be read');
  const outcomes = [() => new Promise<never>(() => {}), () => Promise.reject(failure), async () => access()];
  const { connect } = aProcess(() => outcomes.shift()?.() ?? Promise.reject(new Error('no more reads')));
  void connect();
  await expect(connect()).rejects.toBe(failure);
  await expect(connect()).resolves.toBeDefined();
});

/** Returns a process, and the requests of a pass of it, after an earlier pass has read the first of these tokens. */
async function afterOneRead(...tokens: (string | ClusterError)[]) {
  const process = aProcess(async () => {
    const Authorization = tokens.shift();
    if (typeof Authorization !== 'string') throw Authorization;
    return access({ authHeaders: async () => ({ Authorization }) });
  });
  await process.connect();
  const { kubernetes } = await process.connect();
  return { ...process, get: () => kubernetes.get(NAMESPACE) };
}

test('if an API server refuses the credential, the pass reads the kubeconfig again once, and continues with the new credential', async () => {
  const before = server.requests.length;
  const { get, reads } = await afterOneRead('old', 'new');
  await expect(Promise.all([get(), get()])).resolves.toHaveLength(2);
  const tokens = server.requests.slice(before).map(({ headers }) => headers['authorization']);
  expect(tokens.filter((token) => token === 'new')).toHaveLength(2);
  expect(reads()).toBe(2);
});

test('if the API server refuses the credential of the new kubeconfig too, only the next pass reads the kubeconfig again', async () => {
  const { connect, get, reads } = await afterOneRead('old', 'old', 'new');
  await expect(get()).rejects.toMatchObject({ code: 'Unauthorized' });
  await expect(get()).rejects.toMatchObject({ code: 'Unauthorized' });
  expect(reads()).toBe(2);
  await expect((await connect()).kubernetes.get(NAMESPACE)).resolves.toBeDefined();
  expect(reads()).toBe(3);
});

test('if the kubeconfig cannot be read after the API server refused the credential, the error contains both reasons', async () => {
  const { get } = await afterOneRead('old', new ClusterError('Unavailable', 'secret demo got no answer'));
  await expect(get()).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringMatching(/refused the credential.*cannot be read again: secret demo got no answer/),
  });
});

test('if a pass cannot confirm a stored kubeconfig, it still reads the kubeconfig again when the credential is refused', async () => {
  const tokens = ['old', undefined, 'new'];
  const { clock, connect } = aProcess(async () => {
    const Authorization = tokens.shift();
    if (Authorization === undefined) throw new ClusterError('Throttled', 'too many reads');
    return access({ authHeaders: async () => ({ Authorization }) });
  });
  const spec = aClusterSpec({ kubeconfig: { ssm: '/x' } });
  await connect(spec);
  clock.nowMs += MINUTE;
  const { kubernetes, controlPlane } = await connect(spec);
  await expect(controlPlane.confirm(0)).rejects.toMatchObject({ code: 'Throttled' });
  await expect(kubernetes.get(NAMESPACE)).resolves.toBeDefined();
});

test.each([
  { kubeconfig: { file: 'x' }, again: 2, how: 'at once from a file' },
  { kubeconfig: { ssm: '/x' }, again: 1, how: 'at most once a minute from a store' },
])('while an API server is unreachable, its kubeconfig is read again $how', async ({ kubeconfig, again }) => {
  const unreachable = access({ server: 'http://127.0.0.1:1' });
  const { clock, connect, reads } = aProcess(async () => unreachable);
  const spec = aClusterSpec({ kubeconfig });
  const get = async () => (await connect(spec)).kubernetes.get(NAMESPACE);
  await expect(get()).rejects.toMatchObject({ code: 'Unavailable' });
  await connect(spec);
  expect(reads()).toBe(again);
  clock.nowMs += MINUTE;
  await expect(get()).rejects.toMatchObject({ code: 'Unavailable' });
  await connect(spec);
  expect(reads()).toBe(again === 1 ? 2 : 3);
});

test('a credential in the last third of its lifetime causes one warning, and each connection reports that the credential expires soon', async () => {
  const { clock, connect, warnings } = aProcess(async () => accessUntil(90 * 60));
  clock.nowMs = 59 * MINUTE;
  expect(await connect()).toMatchObject({ credentialEndsSoon: false });
  expect(warnings).toEqual([]);
  for (const minutes of [64, 70]) {
    clock.nowMs = minutes * MINUTE;
    expect(await connect()).toMatchObject({ credentialEndsSoon: true });
  }
  expect(warnings).toEqual([
    'the token of the kubeconfig ends at 1970-01-01T01:30:00.000Z: renew it (docs/kubeconfig-secret.md)',
  ]);
});

test('a token that ended before the first date of JavaScript causes a warning with the number of milliseconds', async () => {
  const { connect, warnings } = aProcess(async () => accessUntil(-1e15));
  await connect();
  expect(warnings).toEqual([expect.stringContaining('ends at -1000000000000000000: renew it')]);
});

test('if a pass reads a kubeconfig again, the log of that pass contains the warning about the kubeconfig', async () => {
  const { clusters, clock } = aProcess(async () => accessUntil(90 * 60));
  const warnings: string[] = [];
  const pass = async (name: string) => {
    const warn = (text: string) => warnings.push(`${name}: ${text}`);
    const options = { loop: 'system-namespaces', signal: new AbortController().signal, warn } as const;
    await clusters.connect(aClusterSpec(), options);
  };
  await pass('first');
  clock.nowMs = 64 * MINUTE;
  await pass('second');
  expect(warnings).toEqual([expect.stringMatching(/^second: the token of the kubeconfig ends at/)]);
});

test('a process logs only once that a kubeconfig disables TLS verification', async () => {
  const { clock, connect, warnings } = aProcess(async () => access({ tls: () => ({ rejectUnauthorized: false }) }));
  await Promise.all([connect(), connect()]);
  clock.nowMs += 10 * MINUTE;
  await connect();
  expect(warnings).toEqual(['the kubeconfig disables verification of the API server certificate']);
});
