import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  CloudFormationClient,
  DescribeStackResourcesCommand,
  GetTemplateCommand,
} from '@aws-sdk/client-cloudformation';
import { type Aws, awsCalls, REGION, texts } from '../support/emulator-aws.ts';
import type { Statement } from '../support/emulator-policy.ts';
import { emulatedAws } from '../support/emulator-project.ts';
import { unzip } from '../support/read-zip.ts';
import { resolveTemplate } from '../support/resolve-template.ts';
import { freePort, startServer } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startCallRecorder } from './emulator-calls.ts';
import { type Runnable, runFunction } from './emulator-function.ts';

const deployTests = import.meta.dirname;

/** An empty AWS emulator on a loopback port, which ends with this process. */
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

/** Starts moto's server. @throws Error when `test/deploy/install.sh` has not installed it. */
export async function startEmulator() {
  const words = [join(deployTests, 'install.sh'), 'emulator', '--folder'];
  const python = join(execFileSync('bash', words, { encoding: 'utf8' }).trim(), 'bin/python');
  if (!existsSync(python)) throw new Error(`${python} is not there: "npm run test:deploy" installs it`);
  const port = await freePort('127.0.0.1');
  const endpoint = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${endpoint}/moto-api/`)).ok;
  const program = [join(deployTests, 'emulator.py'), '-p', String(port)];
  const server = await startServer(python, program, temporaryFolder(), isReady);
  const recorder = await startCallRecorder(endpoint);
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const config = { endpoint, region: REGION, credentials };
  const cloudFormation = new CloudFormationClient(config);
  return {
    /** Options of AWS clients whose calls are not recorded. */
    config,
    cloudFormation,
    /** Functions that call other services. Their calls are not recorded. */
    aws: awsCalls(endpoint),
    /** The recording proxy that deployed functions call. */
    recorder,
    async close() {
      cloudFormation.destroy();
      await recorder.close();
      await server.kill(); // it has no state to save
    },
  };
}

export type DeployedFunction = Awaited<ReturnType<typeof readFunction>>;
/** The functions by their names in `serverless.yml`. */
export type Functions = Readonly<Record<string, DeployedFunction>>;

type Name = 'FunctionName' | 'FunctionArn' | 'Handler' | 'Role' | 'Runtime';
interface FunctionConfiguration extends Readonly<Record<Name, string>> {
  readonly MemorySize: number;
  readonly Timeout: number;
  readonly Environment?: { readonly Variables: Readonly<Record<string, string>> };
}

/** Reads a stack from the emulator and unpacks its functions, so that they can run. */
export async function readStack(emulator: Emulator, name: string, codeBucket?: string) {
  const { aws, cloudFormation } = emulator;
  const stack = { StackName: name };
  const { StackResources = [] } = await cloudFormation.send(new DescribeStackResourcesCommand(stack));
  const resources = StackResources.map(({ PhysicalResourceId: physicalId = '', ResourceType: type = '' }) => {
    return { physicalId, type };
  });
  const bucket = codeBucket ?? resources.find(({ type }) => type === 'AWS::S3::Bucket')?.physicalId ?? '';
  const folder = temporaryFolder();
  const unpackFromBucket = async (key: string, into: string) => unzip(await aws.get('s3', `/${bucket}/${key}`), into);

  // Each function gets all layers, because the emulator does not store the layers of a function.
  const opt = join(folder, 'opt');
  const { TemplateBody = '' } = await cloudFormation.send(new GetTemplateCommand(stack));
  const template = resolveTemplate(JSON.parse(TemplateBody));
  const layers = Object.values(template.Resources).filter(({ Type }) => Type === 'AWS::Lambda::LayerVersion');
  for (const { Properties } of layers) await unpackFromBucket(Properties.Content.S3Key, opt);

  const physicalIds = (ofType: string) => resources.filter(({ type }) => type === ofType).map((one) => one.physicalId);
  const aliases = physicalIds('AWS::Lambda::Alias').map((arn) => arn.split(':').slice(-2).join(':'));
  const functions = await Promise.all(
    physicalIds('AWS::Lambda::Function').map((of) => {
      const invoked = aliases.find((alias) => alias.startsWith(`${of}:`)) ?? of;
      return readFunction(emulator, { name: of, invoked }, { folder: join(folder, of), opt }, unpackFromBucket);
    }),
  );
  return {
    resources,
    functions: Object.fromEntries(functions.map((one) => [one.name.slice(name.length + 1), one])) as Functions,
    /** Ends the processes of all functions. */
    stop: async () => void (await Promise.all(functions.map((one) => one.stop()))),
  };
}

/** @param names `invoked` is the name with the alias that callers invoke, if there is an alias */
async function readFunction(
  { aws, recorder }: Emulator,
  { name, invoked }: { readonly name: string; readonly invoked: string },
  { folder, opt }: Pick<Runnable, 'folder' | 'opt'>,
  unpackFromBucket: (key: string, into: string) => Promise<void>,
) {
  const answer = await aws.get('lambda', `/2015-03-31/functions/${encodeURIComponent(invoked)}`);
  // The emulator returns a wrong bucket in the location of the code: the zip is in the bucket of the deployment.
  const {
    Configuration: configuration,
    Code: code,
  }: { Configuration: FunctionConfiguration; Code: { Location: string } } = JSON.parse(answer.toString());
  await unpackFromBucket(new URL(code.Location).pathname.slice(1), folder);
  const runnable: Runnable = {
    folder,
    opt,
    handler: configuration.Handler,
    limitMs: configuration.Timeout * 1000,
    environment: {
      ...configuration.Environment?.Variables,
      AWS_EXECUTION_ENV: `AWS_Lambda_${configuration.Runtime}`,
      AWS_LAMBDA_FUNCTION_NAME: configuration.FunctionName,
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(configuration.MemorySize),
      ...emulatedAws(recorder.endpoint, name),
    },
  };
  return {
    ...runFunction(runnable),
    runnable,
    name,
    arn: configuration.FunctionArn,
    statements: await roleStatements(aws, configuration.Role.split('/').at(-1) ?? ''),
  };
}

/** Returns the statements of all policies of a role. The stack attaches no managed policy. */
async function roleStatements(aws: Aws, role: string): Promise<Statement[]> {
  const iam = (action: string, fields: Readonly<Record<string, string>>) =>
    aws.form('iam', { Action: action, Version: '2010-05-08', ...fields });
  const names = texts(await iam('ListRolePolicies', { RoleName: role }), 'member');
  const policies = names.map((name) => iam('GetRolePolicy', { RoleName: role, PolicyName: name }));
  return (await Promise.all(policies)).flatMap((xml) => {
    const [text = ''] = texts(xml, 'PolicyDocument');
    const document: { Statement: Statement | Statement[] } = JSON.parse(decodeURIComponent(text));
    return document.Statement;
  });
}
