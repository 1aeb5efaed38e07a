import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateStackCommand, UpdateStackCommand } from '@aws-sdk/client-cloudformation';
import { expect } from '@jest/globals';
import { describeStack } from '../../deploy/deployed-stack.ts';
import type { Loop } from '../../lib/spec/cluster-spec.ts';
import { createDynamoClient, dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { ACCOUNT, type Aws, REGION } from '../support/emulator-aws.ts';
import { notGranted, shippedPolicy } from '../support/emulator-policy.ts';
import { copyProject, DEPLOYER, type Release } from '../support/emulator-project.ts';
import { eventually } from '../support/eventually.ts';
import { found } from '../support/found.ts';
import { queueEvent } from '../support/memory-queue.ts';
import { type LogLine, readLines } from './emulator-logs.ts';
import { type DeployedFunction, type Emulator, type Functions, readStack, startEmulator } from './emulator-stack.ts';

export const STACK = 'kube-bootstrap-controller-dev';

export type Deployment = Awaited<ReturnType<typeof openDeployment>>;

/** Starts a copy of the project, an AWS emulator, and the deployments of the project there. */
export async function startWorld() {
  const emulator = await startEmulator();
  const project = copyProject(emulator.recorder.endpoint);
  const deployments: Deployment[] = [];
  const { cloudFormation, config } = emulator;
  const client = createDynamoClient(config);

  const missing: string[] = [];
  let judged = 0;
  /** Checks the new calls against the policies of the last deployment. */
  const judgeCalls = () => {
    const calls = emulator.recorder.calls.slice(judged);
    judged += calls.length;
    for (const { name, statements } of Object.values(deployments.at(-1)?.functions ?? {})) {
      const own = calls.filter(({ caller }) => caller === name);
      missing.push(...notGranted(own, statements));
    }
    // The policy omits this action, because osls works without it.
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
  return {
    emulator,
    project,
    /** Reads the stack after a change that another function made. */
    readBack: () => readBack(),
    /** Builds a release, and creates or updates the stack with CloudFormation. An update keeps the other parameters. */
    async deployRelease(parameters: Readonly<Record<string, string>> = {}, version?: string) {
      const release = project.release(version);
      await uploadRelease(emulator, release);
      // Sends the current values of all parameters, because moto supports UsePreviousValue only for some parameters. "aws
      // cloudformation deploy" uses UsePreviousValue.
      const deployed = await describeStack(STACK, config);
      const named = { ...deployed?.parameters, CodeBucket: RELEASE_BUCKET, ...parameters };
      const stack = {
        StackName: STACK,
        TemplateURL: `https://${RELEASE_BUCKET}.s3.amazonaws.com/template.json`,
        Capabilities: ['CAPABILITY_IAM' as const],
        Parameters: Object.entries(named).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
      };
      if (deployed === undefined) await cloudFormation.send(new CreateStackCommand(stack));
      else await cloudFormation.send(new UpdateStackCommand(stack));
      return readBack(RELEASE_BUCKET);
    },
    /** Deploys the project, and reads the stack. Stops the functions of the previous deployment. */
    async deploy(...args: readonly string[]) {
      await project.serverless(['deploy', ...args]);
      return readBack();
    },
    /** Creates or changes a secret. */
    async putSecret(id: string, text: string) {
      const secret = { SecretString: text, ClientRequestToken: randomUUID() };
      await emulator.aws
        .json('secretsmanager', 'secretsmanager.PutSecretValue', { SecretId: id, ...secret })
        .catch(() => emulator.aws.json('secretsmanager', 'secretsmanager.CreateSecret', { Name: id, ...secret }));
    },
    /** The table of the stack. */
    table: () => {
      const { signal } = new AbortController();
      return dynamoDbTable({ client, tableName: STACK, deadline: signal, nowMs: Date.now, newWriteId: randomUUID });
    },
    /** Reads the stack from CloudFormation. Returns `undefined` if the stack does not exist. */
    describe: () => describeStack(STACK, config),
    /** Returns all lines of all functions of all deployments. */
    lines: () => deployments.flatMap(({ functions }) => Object.values(functions).flatMap(({ lines }) => lines())),
    /** Returns the calls that neither the role of the function nor the policy of deployers allows. */
    callsNotGranted() {
      judgeCalls();
      return missing;
    },
    async close() {
      await deployments.at(-1)?.stop();
      client.destroy();
      project.remove();
      await emulator.close();
    },
  };
}

const { Statement: deployerStatements } = shippedPolicy('deployer');

const RELEASE_BUCKET = 'packages-of-releases';

async function uploadRelease({ aws }: Emulator, { folder, version }: Release): Promise<void> {
  await aws.put('s3', `/${RELEASE_BUCKET}`, '');
  await aws.put('s3', `/${RELEASE_BUCKET}/template.json`, readFileSync(join(folder, 'template.json')));
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.zip'))) {
    const key = `kube-bootstrap-controller/${version}/${name}`;
    await aws.put('s3', `/${RELEASE_BUCKET}/${key}`, readFileSync(join(folder, name)));
  }
}

async function openDeployment(emulator: Emulator, codeBucket: string | undefined) {
  const stack = await readStack(emulator, STACK, codeBucket);
  const schedules = await readSchedules(emulator.aws, stack.functions);
  const find = (name: string) => {
    const deployed = stack.functions[name];
    if (deployed === undefined) throw new Error(`no function ${name} was deployed`);
    return deployed;
  };
  return {
    ...stack,
    /** Returns the function with this name. @throws Error if it was not deployed */
    function: find,
    /** Invokes a loop with its scheduled event. */
    async fire(loop: Loop) {
      const event = schedules[loop];
      if (event === undefined) throw new Error(`${loop} has no schedule`);
      return answered(await find(loop).invoke(event()));
    },
    /** Invokes a function with an event, and expects an answer. */
    run: async (name: string, event: object) => answered(await find(name).invoke(event)),
    /** Returns the queue whose messages invoke the function. */
    queueOf: (name: string) => readQueue(emulator.aws, find(name)),
  };
}

function answered({ answer, error, lines }: Awaited<ReturnType<DeployedFunction['invoke']>>) {
  expect({ error, ...(error && { lines }) }).toEqual({ error: undefined });
  return { answer, ...readLines(lines) };
}

/** Returns the texts of a field of all log lines, such as `changes`, `errors` or `findings`. */
export function textsIn(logs: readonly LogLine[], field: string): string[] {
  return logs.flatMap((line) => {
    const value = line[field];
    return Array.isArray(value) ? value.map(String) : [];
  });
}

/** Returns the messages of all log lines. */
export function messages(logs: readonly LogLine[]): string[] {
  return logs.map(({ message }) => message);
}

type Rule = Readonly<Record<'Name' | 'Arn' | 'State', string>> & { readonly ScheduleExpression?: string };

/** Returns the events of the enabled schedules of a stack, by the name of the function in `serverless.yml`. */
async function readSchedules(aws: Aws, functions: Functions) {
  const schedules: Record<string, () => object> = {};
  const { Rules: rules } = await aws.json<{ Rules: Rule[] }>('events', 'AWSEvents.ListRules', {});
  for (const { Name, Arn, State, ScheduleExpression: expression } of rules) {
    if (expression === undefined || State !== 'ENABLED') continue;
    const list = 'AWSEvents.ListTargetsByRule';
    const { Targets: targets } = await aws.json<{ Targets: { Arn: string }[] }>('events', list, { Rule: Name });
    for (const [name, { arn }] of Object.entries(functions)) {
      if (targets.some((target) => target.Arn === arn)) schedules[name] = () => scheduledEvent(Arn);
    }
  }
  return schedules;
}

/** See https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-run-lambda-schedule.html */
function scheduledEvent(ruleArn: string): object {
  return {
    version: '0',
    id: '53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa',
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: ACCOUNT,
    time: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    region: REGION,
    resources: [ruleArn],
    detail: {},
  };
}

/** Returns the queue that the deployed event source mapping of a function names. */
async function readQueue(aws: Aws, { arn, invoke }: DeployedFunction) {
  const { EventSourceMappings: mappings }: { EventSourceMappings: Record<'EventSourceArn' | 'FunctionArn', string>[] } =
    JSON.parse((await aws.get('lambda', '/2015-03-31/event-source-mappings/')).toString());
  const { EventSourceArn } = found(mappings.find(({ FunctionArn }) => FunctionArn === arn));
  const QueueUrl = `${aws.endpoint}/${ACCOUNT}/${EventSourceArn.split(':').at(-1)}`;
  const call = <Answer>(operation: string, fields: object = {}) =>
    aws.json<Answer>('sqs', `AmazonSQS.${operation}`, { QueueUrl, ...fields });
  return {
    purge: () => call('PurgeQueue'),
    /** Counts the messages, including delayed ones. */
    async waiting() {
      const { Attributes } = await call<{ Attributes: Record<string, string> }>('GetQueueAttributes', {
        AttributeNames: ['All'],
      });
      const { ApproximateNumberOfMessages: visible, ApproximateNumberOfMessagesDelayed: delayed } = Attributes;
      return Number(visible) + Number(delayed);
    },
    /** Waits for a message, invokes the function with it as Lambda does, and deletes it if the invocation succeeds. */
    async deliver() {
      const { Body: body, ReceiptHandle } = await eventually(async () => {
        const { Messages: [message] = [] } = await call<{ Messages?: Record<'ReceiptHandle' | 'Body', string>[] }>(
          'ReceiveMessage',
        );
        return found(message);
      });
      const invocation = await invoke(queueEvent(body));
      if (invocation.error === undefined) await call('DeleteMessage', { ReceiptHandle });
      return { body, ...invocation };
    },
  };
}
