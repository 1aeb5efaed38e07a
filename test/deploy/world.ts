import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { Loop } from '../../lib/cluster/cluster-spec.ts';
import { createDynamoClient, dynamoDbTable } from '../../lib/table/dynamodb-table.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { REGION, texts } from '../support/emulator-aws.ts';
import { notGranted, type Statement } from '../support/emulator-policy.ts';
import { copyProject, DEPLOYER, type Project, type Release } from '../support/emulator-project.ts';
import { type Emulator, startEmulator } from './emulator.ts';
import { type EventSources, readSchedules, type Schedule, startEventSources } from './emulator-events.ts';
import { type LogLine, type ReadLines, readLines } from './emulator-logs.ts';
import { type DeployedFunction, readStack, type Stack } from './emulator-stack.ts';

export const STACK = 'kube-bootstrap-controller-dev';

/** A project, the AWS that it is deployed to, and what runs there. */
export interface World {
  readonly emulator: Emulator;
  readonly project: Project;
  /** Deploys, or deploys again, and reads the stack back; its functions of before end. */
  deploy(...args: readonly string[]): Promise<Deployment>;
  /** Builds a release and deploys it with CloudFormation alone, or updates the stack with it, which keeps its parameters. */
  deployRelease(parameters?: Readonly<Record<string, string>>, version?: string): Promise<Deployment>;
  /** Reads back the stack after another kind of change. */
  readBack(codeBucket?: string): Promise<Deployment>;
  /** Makes or changes a secret. */
  putSecret(id: string, text: string): Promise<void>;
  /** A table of the emulator. */
  table(name?: string): KeyValueTable;
  /** Every line of every function of every deployment. */
  lines(): string[];
  /** Every call that the role of its function, or the policy of deployers, does not allow. */
  callsNotGranted(): string[];
  stop(): Promise<void>;
}

export interface Deployment extends Stack {
  readonly schedules: Readonly<Record<string, Schedule>>;
  /** The function of a name, which must be there. */
  function(name: string): DeployedFunction;
  /** The minute's invocation of a loop. */
  fire(loop: Loop, options?: Parameters<Schedule['fire']>[0]): Promise<Ran>;
  /** An invocation by hand, of one that must answer. */
  run(name: string, event: object): Promise<Ran>;
  startEventSources(): Promise<EventSources>;
}

/** One invocation that answered. */
export interface Ran extends ReadLines {
  readonly answer: unknown;
}

export async function startWorld(): Promise<World> {
  const emulator = await startEmulator();
  const project = copyProject(emulator.recorder.endpoint);
  const deployments: Deployment[] = [];
  const client = createDynamoClient({
    endpoint: emulator.aws.endpoint,
    region: REGION,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  });

  const missing: string[] = [];
  let judged = 0;
  /** By the policies of the deployment that is at its end. */
  const judgeCalls = () => {
    const calls = emulator.recorder.calls.slice(judged);
    judged += calls.length;
    for (const { name, statements } of Object.values(deployments.at(-1)?.functions ?? {})) {
      const own = calls.filter(({ caller }) => caller === name);
      missing.push(...notGranted(own, statements));
    }
    // osls does not need this one.
    const ofDeployer = calls.filter((call) => call.caller === DEPLOYER && call.action !== 'ecr:DescribeRepositories');
    missing.push(...notGranted(ofDeployer, deployerStatements));
  };
  const readBack = async (codeBucket?: string) => {
    await deployments.at(-1)?.stop();
    judgeCalls();
    const deployment = await openDeployment(emulator, codeBucket);
    deployments.push(deployment);
    return deployment;
  };
  const functions = () => deployments.flatMap((deployment) => Object.values(deployment.functions));
  return {
    emulator,
    project,
    readBack,
    async deployRelease(parameters = {}, version = undefined) {
      const release = project.release(version);
      await uploadRelease(emulator, release);
      const stack = { Version: '2010-05-15', StackName: STACK };
      const deployed = await emulator.aws
        .form('cloudformation', { Action: 'DescribeStacks', ...stack })
        .catch(() => '');
      // What UsePreviousValue does, which "aws cloudformation deploy" sends and moto knows only of values that were given.
      const pairs = deployed
        .split('<member>')
        .map((member) => [texts(member, 'ParameterKey')[0] ?? '', texts(member, 'ParameterValue')[0] ?? '']);
      const kept = Object.fromEntries(pairs.filter(([key]) => key !== ''));
      const named = { ...kept, CodeBucket: RELEASE_BUCKET, ...parameters };
      const given = Object.entries(named).flatMap(([key, value], at) => [
        [`Parameters.member.${at + 1}.ParameterKey`, key],
        [`Parameters.member.${at + 1}.ParameterValue`, value],
      ]);
      await emulator.aws.form('cloudformation', {
        ...stack,
        Action: deployed === '' ? 'CreateStack' : 'UpdateStack',
        TemplateURL: `https://${RELEASE_BUCKET}.s3.amazonaws.com/template.json`,
        'Capabilities.member.1': 'CAPABILITY_IAM',
        ...Object.fromEntries(given),
      });
      return readBack(RELEASE_BUCKET);
    },
    async deploy(...args) {
      await project.serverless(['deploy', ...args]);
      return readBack();
    },
    async putSecret(id, text) {
      const secret = { SecretString: text, ClientRequestToken: randomUUID() };
      await emulator.aws
        .json('secretsmanager', 'secretsmanager.PutSecretValue', { SecretId: id, ...secret })
        .catch(() => emulator.aws.json('secretsmanager', 'secretsmanager.CreateSecret', { Name: id, ...secret }));
    },
    table: (tableName = STACK) =>
      dynamoDbTable({
        client,
        tableName,
        deadline: new AbortController().signal,
        nowMs: Date.now,
        newWriteId: randomUUID,
      }),
    lines: () => functions().flatMap(({ lines }) => lines),
    callsNotGranted() {
      judgeCalls();
      return missing;
    },
    async stop() {
      await deployments.at(-1)?.stop();
      client.destroy();
      project.remove();
      await emulator.stop();
    },
  };
}

const { Statement: deployerStatements }: { readonly Statement: readonly Statement[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../deploy/policies/deployer.json'), 'utf8'),
);

const RELEASE_BUCKET = 'packages-of-releases';

async function uploadRelease({ aws }: Emulator, { folder, version }: Release): Promise<void> {
  await aws.put('s3', `/${RELEASE_BUCKET}`, '');
  await aws.put('s3', `/${RELEASE_BUCKET}/template.json`, readFileSync(join(folder, 'template.json')));
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.zip'))) {
    const key = `kube-bootstrap-controller/${version}/${name}`;
    await aws.put('s3', `/${RELEASE_BUCKET}/${key}`, readFileSync(join(folder, name)));
  }
}

async function openDeployment(emulator: Emulator, codeBucket: string | undefined): Promise<Deployment> {
  const stack = await readStack(emulator, STACK, codeBucket);
  const schedules = await readSchedules(emulator.aws, stack);
  const find = (name: string) => {
    const found = stack.functions[name];
    if (found === undefined) throw new Error(`no function ${name} was deployed`);
    return found;
  };
  return {
    ...stack,
    schedules,
    function: find,
    async fire(loop, options) {
      const schedule = schedules[loop];
      if (schedule === undefined) throw new Error(`${loop} has no schedule`);
      return answered(await schedule.fire(options));
    },
    run: async (name, event) => answered(await find(name).invoke(event)),
    startEventSources: () => startEventSources(emulator.aws, stack),
  };
}

function answered({ answer, error, lines }: Awaited<ReturnType<DeployedFunction['invoke']>>): Ran {
  expect({ error, ...(error && { lines }) }).toEqual({ error: undefined });
  return { answer, ...readLines(lines) };
}

/** The texts of a field of all log lines, such as `changes`, `errors` or `findings`. */
export function textsIn(logs: readonly LogLine[], field: string): string[] {
  return logs.flatMap((line) => {
    const value = line[field];
    return Array.isArray(value) ? value.map(String) : [];
  });
}

/** Messages of all log lines. */
export function messages(logs: readonly LogLine[]): string[] {
  return logs.map(({ message }) => message);
}
