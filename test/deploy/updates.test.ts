import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import type { Item } from '../../lib/table/key-value-table.ts';
import { LEASES } from '../../lib/table/leases.ts';
import { CLUSTER, deployedCluster, FIRST, SECOND } from './two-api-servers.ts';
import { textsIn } from './world.ts';

const LOOP = 'kubernetes-service';

/* The tests run in order with one stack: each starts with the state that the previous test left. */
const PARAMETERS = ['admission=on', 'admissionConcurrency=5', 'clustersPerTick=8', 'tags=team=platform'];
const our = deployedCluster(...PARAMETERS.flatMap((each) => ['--param', each]));

beforeAll(async () => {
  // Only this loop claims a cluster for the stack.
  await our.deployed.fire(LOOP);
  await expectAllLoopsWork();
});

async function expectAllLoopsWork(): Promise<void> {
  for (const loop of LOOPS) {
    const { answer, logs } = await our.deployed.run(loop, { clusters: [CLUSTER], force: true });
    expect(textsIn(logs, 'errors')).toEqual([]);
    expect(answer).toMatchObject({ passes: 1, failed: 0 });
  }
  await our.controlPlane.expectPublished(FIRST, SECOND);
}

/** Returns the items that the table must not lose, by key. */
async function kept(): Promise<Record<string, Item['value']>> {
  const table = our.world.table();
  const own = ['ranges/', LEASES, 'runs/'].map((prefix) => table.list(CLUSTER, prefix));
  const items = (await Promise.all([table.list('#clusters', CLUSTER), ...own])).flat();
  expect(items.map(({ key }) => key)).toEqual(expect.arrayContaining([CLUSTER, LEASES, `runs/${LOOP}`]));
  return Object.fromEntries(items.map(({ key, value }) => [key, value]));
}

const environment = () => {
  const { POWERTOOLS_LOG_LEVEL, CLUSTERS_PER_TICK } = our.deployed.function('doctor').runnable.environment;
  return [POWERTOOLS_LOG_LEVEL, CLUSTERS_PER_TICK, Object.keys(our.deployed.functions).includes('admission')];
};

/**
 * Both builds contain this source code. The new build only has another version number. The test verifies that a deployment
 * replaces the code, that a rollback restores it and keeps the parameters, and that each build uses the table of the other.
 */
test('a new build and a rollback continue with the state of the previous build, and keep the parameters of the stack', async () => {
  const file = join(our.world.project.folder, 'lib/runtime/version.ts');
  const [, version = ''] = /'([^']+)'/.exec(readFileSync(file, 'utf8')) ?? [];
  const agents = async () => {
    await expectAllLoopsWork();
    const { folder } = our.deployed.function(LOOP).runnable;
    return readFileSync(join(folder, `functions/${LOOP}.mjs`), 'utf8').includes('99.0.0-next') ? 'new' : 'before';
  };
  const listed = await our.world.project.serverless(['deploy', 'list']);
  const timestamp = /Timestamp: (\d+)/.exec(listed)?.[1] ?? '';

  writeFileSync(file, readFileSync(file, 'utf8').replace(version, '99.0.0-next'));
  const before = await kept();
  const printed = await our.world.project.serverless(['deploy', '--param', 'logLevel=WARN']);
  expect(printed).toMatch(
    /Next:\n *register a cluster: node cli\/kbctl\.mjs cluster apply .*\n *status: node cli\/kbctl\.mjs status --table \S+\n *dashboard: https/,
  );
  expect(printed).toContain('not set them: ClustersPerTick=8, Admission=on, AdmissionConcurrency=5\n');
  expect(printed).toMatch(/\nlayers:\n {2}allocator: arn:aws:lambda:\S+:layer:\S+:\d+\n/);
  our.deployed = await our.world.readBack();
  expect(await kept()).toEqual(before);
  expect(await agents()).toBe('new');
  expect(environment()).toEqual(['WARN', '8', true]);
  expect(await our.world.describe()).toMatchObject({ tags: { team: 'platform' } });

  await our.world.project.serverless(['rollback', '--timestamp', timestamp]);
  writeFileSync(file, readFileSync(file, 'utf8').replace('99.0.0-next', version));
  our.deployed = await our.world.readBack();
  expect(await agents()).toBe('before');
  expect(environment()).toEqual(['WARN', '8', true]);
});

test('a table keeps all its items when its stack is removed', async () => {
  const before = await kept();
  await our.deployed.stop();
  await our.world.project.serverless(['remove']);
  expect(await our.world.describe()).toBeUndefined();
  expect(await kept()).toEqual(before);
});

test('policies grant every AWS call that a function, a deployment, a rollback or a removal makes', () => {
  expect(our.world.callsNotGranted()).toEqual([]);
});
