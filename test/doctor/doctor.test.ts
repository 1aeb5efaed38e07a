import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { checkConcurrency } from '../../lib/doctor/check-stack.ts';
import { doctor } from '../../lib/doctor/doctor.ts';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { parseKubeconfig } from '../../lib/kubernetes/kubeconfig.ts';
import { doctorEnvironmentFrom } from '../../lib/runtime/cluster-environment.ts';
import type { DoctorEnvironment } from '../../lib/runtime/environment.ts';
import { type ListeningStandIn, listen } from '../../local/stand-in/api-servers.ts';
import { kubeconfigOf } from '../../local/stand-in/identity.ts';
import type { StandInApiServer } from '../../local/stand-in/stand-in-api-server.ts';
import { aServer } from '../support/a-cluster-spec.ts';
import { aDispatchWorld, type DispatchWorld } from '../support/dispatch-world.ts';
import { IDENTITY, objectsIn, readyStandIn } from '../support/stand-in.ts';

let standIn: StandInApiServer;
let server: ListeningStandIn;
beforeAll(async () => {
  standIn = await readyStandIn();
  server = await listen(standIn, IDENTITY);
});
afterAll(() => server.close());

const healthy: DoctorEnvironment = {
  loadKubeconfig: () => parseKubeconfig(kubeconfigOf('stand-in', server.url, IDENTITY), 'of the test'),
  queues: { urls: ['https://sqs.eu-test-1.amazonaws.com/123/ticks'], depth: async () => 0 },
};

/** Replaces the function that loads the kubeconfig of the cluster `one`. */
function loadingOne(load: DoctorEnvironment['loadKubeconfig']): Partial<DoctorEnvironment> {
  return { loadKubeconfig: (spec, signal) => (spec.name === 'one' ? load : healthy.loadKubeconfig)(spec, signal) };
}

async function aWorld(): Promise<DispatchWorld> {
  const world = aDispatchWorld();
  const apiServers = [aServer('10.9.8.7', { url: `${server.url}/readyz` })];
  await world.register({ name: 'one', kubeconfig: { ssm: '/kbc/one' }, apiServers }, { name: 'two', apiServers });
  return world;
}

function ask(world: DispatchWorld, event: unknown, environment: Partial<DoctorEnvironment> = {}) {
  const context = { getRemainingTimeInMillis: () => 60_000, environment: world.environment };
  return doctor(() => ({ ...healthy, ...environment }))(event, context);
}

test('the doctor makes all checks for one cluster: of the table, the queue, the kubeconfig, the API server, its permissions and the endpoints', async () => {
  const { lines, ok } = await ask(await aWorld(), { cluster: 'one' });
  expect(lines.filter(({ level }) => level === 'fail')).toEqual([]);
  expect(ok).toBe(true);
  const checks = [...new Set(lines.map(({ check }) => check))].join(', ');
  expect(checks).toBe('table, queue, spec, kubeconfig, token, dns, api server, probe, rights, service, owner');
  expect(lines.find(({ check }) => check === 'kubeconfig')?.message).toContain('of kubeconfig of the test: https:');
  expect(lines.filter(({ cluster }) => cluster !== undefined).every(({ cluster }) => cluster === 'one')).toBe(true);
  expect(lines.filter(({ level }) => level === 'warn').every(({ fix }) => fix !== undefined)).toBe(true);
});

test('the doctor checks all clusters, and writes one log line', async () => {
  const world = await aWorld();
  const { lines } = await ask(world, undefined);
  expect(lines).toContainEqual({ check: 'clusters', level: 'ok', message: '2 are registered' });
  expect(new Set(lines.map(({ cluster }) => cluster))).toEqual(new Set([undefined, 'one', 'two']));
  expect(world.telemetry.lines.map(({ message }) => message)).toEqual(['doctor: checks completed']);
  expect(world.telemetry.flushes.count).toBe(1);
});

test('the doctor changes nothing in a cluster', async () => {
  const before = await objectsIn(standIn);
  await ask(await aWorld(), {});
  expect(await objectsIn(standIn)).toEqual(before);
});

test('a kubeconfig that cannot be read causes one line of level fail, and other clusters are still checked', async () => {
  const message = 'secret kbc/one was not found. Put the kubeconfig there.';
  const unread = () => Promise.reject(new ClusterError('BadKubeconfig', message));
  const { lines, ok } = await ask(await aWorld(), {}, loadingOne(unread));
  expect(ok).toBe(false);
  expect(lines.filter(({ level }) => level === 'fail')).toEqual([
    { cluster: 'one', check: 'kubeconfig', level: 'fail', message },
  ]);
  expect(lines).toContainEqual(expect.objectContaining({ cluster: 'two', check: 'owner' }));
});

test('a check that never ends does not delay other checks', async () => {
  const world = await aWorld();
  const answer = ask(
    world,
    {},
    loadingOne(() => new Promise(() => {})),
  );
  while (world.deadlines.length < 3 || !world.deadlines[2]?.cancelled) await new Promise(setImmediate);
  world.deadlines[1]?.expire();
  const { lines } = await answer;
  expect(lines.filter(({ level }) => level === 'fail')).toMatchObject([{ cluster: 'one', check: 'kubeconfig' }]);
  expect(lines).toContainEqual(expect.objectContaining({ cluster: 'two', check: 'owner' }));
});

test('the doctor fails with a resolution if the cluster in the request is not registered', async () => {
  const { lines, ok } = await ask(await aWorld(), { cluster: 'three' });
  expect(ok).toBe(false);
  const message = expect.stringContaining('three');
  expect(lines.at(-1)).toMatchObject({ check: 'clusters', message, fix: expect.any(String) });
});

test('the doctor refuses an event with an unknown field', async () => {
  await expect(ask(await aWorld(), { clusters: ['one'] })).rejects.toMatchObject({ code: 'BadEvent' });
});

test('the doctor reads the limit of concurrent ticks from the environment, and warns if it is too low for the number of clusters', () => {
  expect(doctorEnvironmentFrom({ TICK_CONCURRENCY: '12' }).queues?.concurrency).toBe(12);
  expect(doctorEnvironmentFrom({}).queues).not.toHaveProperty('concurrency');
  expect(checkConcurrency(640, 16, 10)).toEqual([]);
  expect(checkConcurrency(10_000, 16, undefined)).toEqual([]);
  expect(checkConcurrency(10_000, 16, 10)).toMatchObject([
    { level: 'warn', fix: 'Set the parameter tickConcurrency of the stack to 157' },
  ]);
});
