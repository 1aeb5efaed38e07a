import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parseClusterSpec } from '../../cli/spec/parse-cluster-spec.ts';
import { describeFaults } from '../../cli/spec/spec-fault.ts';
import { LOOPS } from '../../lib/cluster/cluster-spec.ts';
import type { Summary } from '../../lib/dispatch/dispatch.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { Item } from '../../lib/table/key-value-table.ts';
import { LEASES, readLeases } from '../../lib/table/leases.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { type KubeApiserver, kubeconfig, startEtcd, startKubeApiserver } from '../support/control-plane.ts';
import { readLines, sumOf } from '../support/emulator-logs.ts';
import { stackResources } from '../support/emulator-stack.ts';
import { eventually } from '../support/eventually.ts';
import { published, versionsOf } from '../support/kubernetes-service-objects.ts';
import { applyShippedRbac } from '../support/shipped-rbac.ts';
import { type SilentServer, startSilentServer } from '../support/silent-server.ts';
import { type Deployment, STACK, startWorld, textsIn, type World } from './world.ts';

const ADDRESS = '10.9.8.7';
const WELL = ['one', 'two'] as const;
const HUNG = 'hung';
const LOOP = 'kubernetes-service';

let world: World;
let silent: SilentServer;
let deployed: Deployment;
const controlPlanes = new Map<string, ControlPlane>();
const stops: (() => Promise<void>)[] = [];

/* In order, each from where the one before ended: the life of one stack. */
beforeAll(async () => {
  // One after the other: what has started is stopped, also when the next one does not start.
  world = await startWorld();
  silent = await startSilentServer();
  for (const name of WELL) await startControlPlane(name);
  deployed = await world.deploy();
});

afterAll(async () => {
  await world?.stop();
  await silent?.close();
  await Promise.all(stops.map((stop) => stop()));
});

interface ControlPlane {
  readonly apiserver: KubeApiserver;
  /** Of the service account that is shipped. */
  readonly account: Awaited<ReturnType<typeof applyShippedRbac>>;
}

async function startControlPlane(name: string): Promise<void> {
  const etcd = await startEtcd();
  stops.push(() => etcd.stop());
  const apiserver = await startKubeApiserver({ etcd });
  controlPlanes.set(name, { apiserver, account: await applyShippedRbac(apiserver) });
}

function controlPlane(name: string): ControlPlane {
  const found = controlPlanes.get(name);
  if (found === undefined) throw new Error(`no control plane of ${name} was started`);
  return found;
}

/** Registers a cluster of the table's own, and puts its kubeconfig where the spec names it. */
async function register(name: string, kubeconfigYaml: string, fields: object): Promise<void> {
  const secretsManager = `kube-bootstrap-controller/dev/${name}`;
  await world.putSecret(secretsManager, kubeconfigYaml);
  const text = JSON.stringify({ name, mode: 'enforce', kubeconfig: { secretsManager }, ...fields });
  const result = parseClusterSpec(text);
  if ('faults' in result) throw new Error(describeFaults(name, result.faults));
  await registerCluster(world.table(), result.spec);
}

async function registerWellOne(name: string, fields: object = {}): Promise<void> {
  const { apiserver, account } = controlPlane(name);
  const { url, port } = apiserver;
  const apiServers = [{ address: ADDRESS, probe: { url: `${url}/readyz` } }];
  await register(name, account.kubeconfigYaml, { apiServers, service: { securePort: port }, ...fields });
}

async function expectPublishedByWellOnes(): Promise<void> {
  for (const name of WELL) {
    expect(await published(controlPlane(name).apiserver)).toEqual({ endpoints: [ADDRESS], slice: [ADDRESS] });
  }
}

/** Every loop, once, for the clusters that are well. */
async function expectAllLoopsWork(): Promise<void> {
  for (const loop of LOOPS) {
    const { answer, logs } = await deployed.run(loop, { clusters: WELL, force: true });
    expect(textsIn(logs, 'errors')).toEqual([]);
    expect(answer).toMatchObject({ passes: WELL.length, failed: 0 });
  }
  await expectPublishedByWellOnes();
}

/** What the table must not lose, by key. */
async function kept(): Promise<Record<string, Item['value']>> {
  const table = world.table();
  const lists = [...WELL, HUNG].flatMap((name) => [
    table.list('#clusters', name),
    table.list(name, 'ranges/'),
    table.list(name, LEASES),
    table.list(name, 'runs/'),
  ]);
  const items = (await Promise.all(lists)).flat();
  return Object.fromEntries(items.map(({ cluster, key, value }) => [`${cluster} ${key}`, value]));
}

test('a stack without any cluster works, and counts none', async () => {
  const { answer, metrics } = await deployed.fire(LOOP);

  expect(answer).toEqual({ passes: 0, failed: 0, skipped: 0 });
  expect(sumOf(metrics, 'clustersRegistered')).toBe(0);
});

test('one hanging cluster of three delays the others at no tick', async () => {
  for (const name of WELL) await registerWellOne(name, name === 'two' ? { allocator: 'table' } : {});
  const { ca } = controlPlane('one').apiserver;
  await register(HUNG, kubeconfig({ url: `https://${silent.authority}`, ca, token: 'never-sent' }), {
    apiServers: [{ address: '10.9.8.9', probe: { url: `https://${silent.authority}/readyz` } }],
  });
  const sources = await deployed.startEventSources();
  try {
    expect((await deployed.fire(LOOP)).answer).toEqual({ passes: 0, failed: 0, skipped: 0 });
    await eventually(expectPublishedByWellOnes);
    // A tick that follows a late one finds some clusters not due yet: what counts is that each well one had two passes.
    await eventually(() => {
      const answers = sources.deliveries.map(({ invocation }) => invocation.answer as Summary);
      const succeeded = answers.reduce((sum, { passes, failed }) => sum + passes - failed, 0);
      expect(succeeded).toBeGreaterThanOrEqual(2 * WELL.length);
    });
    await sources.purge(LOOP);
  } finally {
    // What still polls when the emulator ends would end the process of all tests.
    await sources.stop();
  }

  const { logs } = readLines(sources.deliveries.flatMap(({ invocation }) => invocation.lines));
  const ended = logs
    .filter(({ message }) => message.startsWith('pass '))
    .toSorted((one, other) => one.timestamp.localeCompare(other.timestamp));
  // The first tick had all three in one message: the hanging pass ended after the others.
  expect(
    ended
      .slice(0, WELL.length)
      .map((line) => line['cluster'])
      .toSorted(),
  ).toEqual(WELL);
  const failed = ended.filter(({ message }) => message === 'pass failed');
  expect(new Set(failed.map((line) => line['cluster']))).toEqual(new Set([HUNG]));
  const record = async (name: string) => (await readRunRecord(world.table(), name, LOOP))?.record;
  for (const name of WELL) expect(await record(name)).toMatchObject({ outcome: 'succeeded', failuresInARow: 0 });
  for (const _ of [1, 2]) await deployed.run(LOOP, { clusters: [HUNG], force: true });
  expect((await record(HUNG))?.failuresInARow).toBeGreaterThanOrEqual(3);
});

test('the next minute counts one of three as overdue, and logs its name', async () => {
  const { logs, metrics } = await deployed.fire(LOOP);

  expect(sumOf(metrics, 'clustersRegistered')).toBe(3);
  expect(sumOf(metrics, 'clustersOverdue')).toBe(1);
  expect(sumOf(metrics, 'clustersFailing')).toBe(1);
  expect(sumOf(metrics, 'clustersPaused')).toBe(0);
  const naming = logs.filter((line) => JSON.stringify(line['overdue'] ?? '').includes(HUNG));
  expect(naming).toHaveLength(1);
  expect(JSON.stringify(naming)).not.toContain(WELL[0]);
});

test('all four loops work for the clusters that are well', async () => {
  await expectAllLoopsWork();

  expect(Object.keys(await kept())).toEqual(
    expect.arrayContaining(['two ranges/serviceips', 'two ranges/servicenodeports', `one ${LEASES}`]),
  );
});

/**
 * Both builds are of this tree, the new one with another version in it: what is compared is that a deployment replaces
 * what runs, that a rollback brings it back, and that each uses the table that the other wrote.
 */
test('a new build resumes where the one before ended, and so does a rollback', async () => {
  const file = join(world.project.folder, 'lib/runtime/version.ts');
  const [, version = ''] = /'([^']+)'/.exec(readFileSync(file, 'utf8')) ?? [];
  const agents = async () => {
    await expectAllLoopsWork();
    const { folder } = deployed.function(LOOP).runnable;
    return readFileSync(join(folder, `functions/${LOOP}.mjs`), 'utf8').includes('99.0.0-next') ? 'new' : 'before';
  };
  const listed = await world.project.serverless(['deploy', 'list']);
  const timestamp = /Timestamp: (\d+)/.exec(listed)?.[1] ?? '';

  writeFileSync(file, readFileSync(file, 'utf8').replace(version, '99.0.0-next'));
  const before = await kept();
  deployed = await world.deploy();
  expect(await kept()).toEqual(before);
  expect(await agents()).toBe('new');

  await world.project.serverless(['rollback', '--timestamp', timestamp]);
  writeFileSync(file, readFileSync(file, 'utf8').replace('99.0.0-next', version));
  deployed = await world.readBack();
  expect(await agents()).toBe('before');
});

test("a deployment keeps the stack's parameters, and prints them, until one sets them again", async () => {
  const deploy = (...args: string[]) => world.project.serverless(['deploy', ...args]);
  const environment = async () => {
    deployed = await world.readBack();
    const { POWERTOOLS_LOG_LEVEL, CLUSTERS_PER_TICK } = deployed.function('doctor').runnable.environment;
    return [POWERTOOLS_LOG_LEVEL, CLUSTERS_PER_TICK, Object.keys(deployed.functions).includes('admission')];
  };
  const tags = async () => {
    const stack = { Version: '2010-05-15', StackName: STACK };
    return world.emulator.aws.form('cloudformation', { Action: 'DescribeStacks', ...stack });
  };
  const printed = await deploy(
    '--param',
    'admission=on',
    '--param',
    'clustersPerTick=8',
    '--param',
    'tags=team=platform',
  );
  expect(printed).toMatch(
    /Next:\n *register a cluster: node cli\/kbctl\.mjs cluster apply .*\n *status: node cli\/kbctl\.mjs status --table \S+\n *dashboard: https/,
  );
  expect(await deploy('--param', 'logLevel=WARN')).toContain('not set them: ClustersPerTick=8, Admission=on\n');
  expect(await environment()).toEqual(['WARN', '8', true]);
  expect(await tags()).toMatch(/<Key>team<\/Key>\s*<Value>platform</);
  await deploy('--param', 'admission=off', '--param', 'clustersPerTick=16', '--param', 'logLevel=INFO');
  expect(await environment()).toEqual(['INFO', '16', false]);
});

test('a stack that is removed and deployed again finds its table and everything in it', async () => {
  const before = await kept();
  const versions = await Promise.all(WELL.map((name) => versionsOf(controlPlane(name).apiserver)));
  const generation = async () => (await readLeases(world.table(), 'one')).leases[0]?.generation ?? 0;
  const lastGeneration = await generation();

  await deployed.stop();
  await world.project.serverless(['remove']);
  await expect(stackResources(world.emulator.aws, STACK)).rejects.toThrow('does not exist');
  expect(await kept()).toEqual(before);
  deployed = await world.deploy();
  expect(await kept()).toEqual(before);
  const tables = deployed.resources.filter(({ type, physicalId }) => type === 'AWS::DynamoDB::Table' && physicalId);
  expect(tables).toEqual([]);

  await expectAllLoopsWork();

  expect(await generation()).toBe(lastGeneration + 1);
  expect(await Promise.all(WELL.map((name) => versionsOf(controlPlane(name).apiserver)))).toEqual(versions);
});

test('no function made a call that its role does not grant, and no line holds a token', () => {
  expect(world.callsNotGranted()).toEqual([]);
  const lines = world.lines();
  readLines(lines);
  for (const { account } of controlPlanes.values())
    expect(lines.filter((line) => line.includes(account.token))).toEqual([]);
});
