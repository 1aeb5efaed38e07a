import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { clusterFileFaults } from '../../deploy/check-cluster-file.ts';
import { type Parameters, parameterFaults, parametersInForce } from '../../deploy/check-parameters.ts';
import { type Resources, resolveConditions } from '../../deploy/resolve-conditions.ts';
import { readZip, unreadableIn } from '../../tools/read-zip.mjs';
import { packageService } from './package-service.ts';

const CLUSTER = `
name: demo
mode: observe
kubeconfig: { secretsManager: kube-bootstrap-controller/dev/demo }
apiServers: [{ address: 203.0.113.10 }]
`;

describe('parameters', () => {
  const defaults: Parameters = { vpcSubnetIds: '', vpcSecurityGroupIds: '', alarms: 'true' };

  test('the command line comes before the block of the stage, and that before the defaults', () => {
    const blocks = {
      default: { alarms: 'true', logLevel: 'INFO', table: null },
      prod: { logLevel: 'WARN', tickConcurrency: 50 },
    };
    expect(parametersInForce(blocks, 'prod', ['tickConcurrency=100'])).toEqual({
      alarms: 'true',
      logLevel: 'WARN',
      tickConcurrency: '100',
    });
    expect(parametersInForce(blocks, 'dev')).toEqual({ alarms: 'true', logLevel: 'INFO' });
  });

  test.each([
    ['none at all', {}],
    ['a network', { vpcSubnetIds: 'subnet-1,subnet-2', vpcSecurityGroupIds: 'sg-1' }],
    ['a table', { table: 'my.table-1' }],
    ['roles', { assumableRoleArns: 'arn:aws:iam::123456789012:role/a,arn:aws-cn:iam::123456789012:role/path/b' }],
    ['a number', { tickConcurrency: 2 }],
  ])('%s is right', (_what, given: Parameters) => {
    expect(parameterFaults({ ...defaults, ...given })).toBeUndefined();
  });

  test.each([
    ['a name that is none', { alarmTopic: 'x' }, 'alarmTopic: is not a parameter; there are table, '],
    ['subnets without security groups', { vpcSubnetIds: 'subnet-1' }, 'one is said without the other'],
    ['a list with spaces', { vpcSubnetIds: 'subnet-1, subnet-2', vpcSecurityGroupIds: 'sg-1' }, 'no spaces'],
    ['the ARN of a table', { table: 'arn:aws:dynamodb:eu-west-1:123456789012:table/t' }, 'not its ARN'],
    ['the ARN of something else', { alarmTopicArn: 'arn:aws:sqs:eu-west-1:1:q' }, 'begins with arn:aws:sns:'],
    ['a flag that is none', { alarms: 'yes' }, 'alarms: is "yes"; write true or false'],
    ['a prefix like a path', { secretsPrefix: '/clusters/' }, 'without a "/" before it'],
    ['too little concurrency', { tickConcurrency: '1' }, 'write a number from 2 to 1000'],
    ['a message without clusters', { clustersPerTick: '0' }, 'write a number from 1 to 16'],
  ])('%s is a fault', (_what, given: Parameters, told) => {
    expect(parameterFaults({ ...defaults, ...given })).toMatch(/^parameters: 1 fault\n/);
    expect(parameterFaults({ ...defaults, ...given })).toContain(told);
  });
});

describe('a cluster.yml that is to be packaged', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'cluster-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function faultsOf(text: string) {
    const file = path.join(folder, 'cluster.yml');
    await writeFile(file, text);
    return clusterFileFaults(file);
  }

  test('need not be there', () => {
    expect(clusterFileFaults(path.join(folder, 'nothing.yml'))).toBeUndefined();
  });

  test('is right when its kubeconfig is where functions find it', async () => {
    expect(await faultsOf(CLUSTER)).toBeUndefined();
    expect(
      await faultsOf(CLUSTER.replace(/kubeconfig: .*/, 'kubeconfig: { file: /mnt/secrets/demo }')),
    ).toBeUndefined();
  });

  test('has its faults listed, all of them', async () => {
    expect(await faultsOf('name: Demo\nmode: obey\n')).toMatch(/^cluster\.yml: \d faults\n[\s\S]*name[\s\S]*mode/);
  });

  test('may not name a kubeconfig that stays on this machine', async () => {
    const told = await faultsOf(CLUSTER.replace(/kubeconfig: .*/, 'kubeconfig: { file: ./demo.kubeconfig }'));
    expect(told).toContain('kubeconfig.file: ./demo.kubeconfig is not packaged');
  });
});

describe('conditions', () => {
  const resources = (name: string, value: string): Resources =>
    parse(`
      Conditions:
        Wanted: { Fn::Equals: [${value}, 'true'] }
        Unwanted: { Fn::Not: [{ Fn::Equals: [${value}, 'true'] }] }
      Resources:
        Part: { Type: T, Condition: ${name}, Properties: { Name: part } }
        Whole:
          Properties:
            Choice: { Fn::If: [${name}, { Deep: { Fn::If: [${name}, yes, no] } }, { Ref: AWS::NoValue }] }
            List: [1, { Fn::If: [${name}, 2, { Ref: AWS::NoValue }] }, { Ref: Part }]
            Statement: { Condition: { ArnLike: { a: b } } }
    `);

  test.each([
    ['Wanted', 'true'],
    ['Unwanted', 'false'],
  ])('what a condition holds for is there: %s of %s', (name, value) => {
    expect(resolveConditions(resources(name, value))).toEqual({
      Resources: {
        Part: { Type: 'T', Properties: { Name: 'part' } },
        Whole: {
          Properties: {
            Choice: { Deep: 'yes' },
            List: [1, 2, { Ref: 'Part' }],
            Statement: { Condition: { ArnLike: { a: 'b' } } },
          },
        },
      },
    });
  });

  test.each([
    ['Wanted', 'false'],
    ['Unwanted', 'true'],
  ])('what it does not hold for is gone: %s of %s', (name, value) => {
    expect(resolveConditions(resources(name, value))).toEqual({
      Resources: {
        Whole: { Properties: { List: [1, { Ref: 'Part' }], Statement: { Condition: { ArnLike: { a: 'b' } } } } },
      },
    });
  });

  test('one that is nowhere, or made of something else, is refused', () => {
    expect(() => resolveConditions(resources('Wantd', 'true'))).toThrow('no condition "Wantd"');
    expect(() =>
      resolveConditions({ Conditions: { A: { 'Fn::Or': [] } }, Resources: { B: { Condition: 'A' } } }),
    ).toThrow('neither Fn::Equals nor Fn::Not');
  });
});

describe('a package with a cluster.yml', () => {
  test('has it in every function, the allocator library in the layer alone, and nothing of this machine', async () => {
    const { archives } = await packageService({ clusterFile: CLUSTER, bundle: true });
    const { allocator, ...functions } = Object.fromEntries(
      [...archives].map(([name, zip]) => [name, readZip(zip ?? Buffer.alloc(0))]),
    );
    for (const zip of archives.values()) expect(unreadableIn(zip ?? Buffer.alloc(0))).toEqual([]);
    expect([...(allocator?.keys() ?? [])].sort()).toEqual(['nodejs/allocator.mjs', 'nodejs/allocator.mjs.map']);
    for (const [name, files] of Object.entries(functions)) {
      const bundle = `functions/${name}.mjs`;
      expect([...files.keys()].sort()).toEqual(['cluster.yml', bundle, `${bundle}.map`]);
      expect(files.get('cluster.yml')?.toString()).toBe(CLUSTER);
      const { sources } = JSON.parse(files.get(`${bundle}.map`)?.toString() ?? '');
      expect(sources.filter((source: string) => source.includes('lib/allocator/'))).toEqual([]);
      expect(files.get(bundle)?.toString()).toContain('/opt/nodejs/allocator.mjs');
    }
  }, 120_000);

  test('is not made when anything is wrong, and all of it is told', async () => {
    const packaging = packageService({ clusterFile: 'name: Demo\n', parameters: { alarms: 'perhaps' } });
    await expect(packaging).rejects.toMatchObject({
      stdout: expect.stringMatching(/parameters: 1 fault\n[\s\S]*alarms[\s\S]*cluster\.yml: \d faults\n[\s\S]*name/),
    });
  }, 60_000);
});
