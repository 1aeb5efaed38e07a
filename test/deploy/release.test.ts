import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DeleteStackCommand } from '@aws-sdk/client-cloudformation';
import { beforeAll, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { anAllocateWorld, CLUSTER } from '../support/allocate-world.ts';
import { running } from '../support/running.ts';
import { runFunction } from './emulator-function.ts';
import { sumOf } from './emulator-logs.ts';
import { type Deployment, messages, STACK, startWorld } from './world.ts';

/* The tests run in order. CloudFormation deploys one release, as for a user without Node.js and without a clone. */
const world = running(startWorld);
let deployed: Deployment;

beforeAll(async () => {
  deployed = await world.deployRelease({ LogLevel: 'DEBUG', TickConcurrency: '50' });
});

test('a release contains the checksums of all its files, and an SBOM', () => {
  const { folder } = world.project.release();
  const checked = execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' });
  expect(checked.split('\n')).toEqual(
    expect.arrayContaining([
      'template.json: OK',
      'allocate.zip: OK',
      'allocator.zip: OK',
      'maps/functions/allocate.mjs.map: OK',
      'policies/deployer.json: OK',
      'terraform/main.tf: OK',
      'sbom.cdx.json: OK',
    ]),
  );
});

test('every loop of a stack from a release runs on its schedule, with the parameters of the stack', async () => {
  for (const loop of LOOPS) {
    const { answer } = await deployed.fire(loop);
    expect(answer).toEqual({ passes: 0, failed: 0, skipped: 0 });
  }
  const { POWERTOOLS_LOG_LEVEL, SECRETS_PREFIX, STACK: stack } = deployed.function('doctor').runnable.environment;
  expect({ POWERTOOLS_LOG_LEVEL, SECRETS_PREFIX, stack }).toEqual({ POWERTOOLS_LOG_LEVEL: 'DEBUG', stack: STACK });
  expect(Object.keys(deployed.functions)).not.toContain('admission');
});

test('the function allocate allocates, releases and looks up items with the permissions of its role', async () => {
  const { taken, repair } = await anAllocateWorld({ table: world.table(), clock: { nowMs: Date.now() } });
  await repair(Date.now());
  const items = [
    { range: 'serviceips', value: '10.0.0.1' },
    { range: 'servicenodeports', value: 30_001 },
  ];
  const ask = (requestId: string, operation: string, cluster = CLUSTER) =>
    deployed.run('allocate', { requestId, cluster, operation, items });

  const { answer, logs, metrics } = await ask('r1', 'allocate');
  expect(answer).toMatchObject({ outcome: 'done', items: [{ value: '10.0.0.1' }, { value: 30_001 }] });
  expect(await taken()).toEqual({ '10.0.0.1': 'r1', '30001': 'r1' });
  expect(messages(logs)).toEqual(['allocate: done']);
  expect(sumOf(metrics, 'allocations')).toBe(2);
  expect((await ask('r1', 'allocate')).answer).toEqual({ ...(answer as object), replayed: true });
  expect((await ask('r2', 'lookUp')).answer).toMatchObject({ items: [{ outcome: 'taken' }, { outcome: 'taken' }] });
  expect((await ask('r3', 'release')).answer).toMatchObject({ outcome: 'done' });
  expect(await taken()).toEqual({});
  expect((await ask('r4', 'allocate', 'dem')).answer).toMatchObject({
    error: { message: 'cluster dem is not registered' },
  });
  expect(world.callsNotGranted()).toEqual([]);
});

const level = () => deployed.function('allocate').runnable.environment['POWERTOOLS_LOG_LEVEL'];

test('an update that changes only parameters turns the webhook on, moves the alias to a version with the new values, and keeps the table', async () => {
  const items = await world.table().list('#clusters', '');
  expect(level()).toBe('DEBUG');
  const SecretsPrefix = 'kube-bootstrap-controller/';
  const admission = { Admission: 'on', AdmissionConcurrency: '5' };
  deployed = await world.deployRelease({ ...admission, SecretsPrefix, LogLevel: 'ERROR' });
  expect(deployed.function('admission').runnable.environment).toMatchObject({ SECRETS_PREFIX: SecretsPrefix });
  expect(level()).toBe('ERROR');
  expect(await world.table().list('#clusters', '')).toEqual(items);
});

test('every function of a release loads with its layer, and reports a missing variable', async () => {
  const functions = Object.values(deployed.functions);
  expect(functions).toHaveLength(8);
  for (const { runnable } of functions) {
    const running = runFunction({ ...runnable, environment: {} });
    const { error } = await running.invoke({});
    await running.stop();
    expect(error?.errorMessage).toMatch(/environment variable.* serverless\.yml sets/);
  }
});

/** Both releases contain this source code. The next release only has another version number. */
test('after an update to the next release, and after an update back, the functions run the code of the deployed release with the parameters of the stack', async () => {
  const running = async (expected: string) => {
    const { answer } = await deployed.fire('kubernetes-service');
    expect(answer).toMatchObject({ passes: expect.any(Number) });
    const { folder, environment, opt } = deployed.function('kubernetes-service').runnable;
    expect([environment['POWERTOOLS_LOG_LEVEL'], level()]).toEqual([expected, expected]);
    expect(existsSync(join(opt, 'nodejs/allocator.mjs'))).toBe(true);
    const codes = [join(folder, 'functions/kubernetes-service.mjs'), ...aliased()];
    const [release, ...others] = codes.map((file) =>
      readFileSync(file, 'utf8').includes('99.0.0') ? 'next' : 'first',
    );
    expect(new Set(others)).toEqual(new Set([release]));
    return release;
  };
  const aliased = () =>
    ['allocate', 'admission'].map((name) => join(deployed.function(name).runnable.folder, `functions/${name}.mjs`));
  expect(await running('ERROR')).toBe('first');

  deployed = await world.deployRelease({ LogLevel: 'DEBUG' }, '99.0.0');
  expect(await running('DEBUG')).toBe('next');
  expect(Object.keys(deployed.functions)).toContain('admission');

  deployed = await world.deployRelease();
  expect(await running('DEBUG')).toBe('first');
});

test('if a stack was deleted, it can be created again with the existing table, and updates keep the table', async () => {
  const items = await world.table().list('#clusters', '');
  await deployed.stop();
  await world.emulator.cloudFormation.send(new DeleteStackCommand({ StackName: STACK }));
  expect(await world.table().list('#clusters', '')).toEqual(items);

  deployed = await world.deployRelease({ TableName: STACK });
  expect(deployed.resources.filter(({ type, physicalId }) => type === 'AWS::DynamoDB::Table' && physicalId)).toEqual(
    [],
  );
  deployed = await world.deployRelease({ LogLevel: 'WARN' });
  expect(deployed.function('doctor').runnable.environment).toMatchObject({ TABLE_NAME: STACK });
  expect((await deployed.fire('kubernetes-service')).answer).toMatchObject({ passes: expect.any(Number) });
  expect(await world.table().list('#clusters', '')).not.toEqual([]);
});
