import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';

const repository = path.join(import.meta.dirname, '..', '..');
const SOURCES = ['deploy', 'functions', 'lib', 'tools', 'serverless.yml', 'package.json', 'tsconfig.json'];

/** As much of CloudFormation as the tests look at. */
export interface Resource {
  readonly Type: string;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a property is differs from type to type
  readonly Properties: any;
}

export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
}

export interface PackagingOptions {
  readonly parameters?: Readonly<Record<string, string>>;
  readonly stage?: string;
  /** A `cluster.yml` beside `serverless.yml`. */
  readonly clusterFile?: string;
  /** Whether the code is bundled too, which takes most of the time. */
  readonly bundle?: boolean;
}

/** `serverless package` in a copy of the sources, without a network: the template and, by name, what is packaged. */
export async function packageService(options: PackagingOptions = {}) {
  const { parameters = {}, stage = 'dev', clusterFile, bundle = false } = options;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'package-'));
  try {
    await Promise.all(
      SOURCES.map((name) => cp(path.join(repository, name), path.join(folder, name), { recursive: true })),
    );
    await symlink(path.join(repository, 'node_modules'), path.join(folder, 'node_modules'));
    if (clusterFile !== undefined) await writeFile(path.join(folder, 'cluster.yml'), clusterFile, { mode: 0o600 });
    if (!bundle) await leaveOutCode(folder);
    await serverlessPackage(folder, stage, parameters);
    const packaged = path.join(folder, '.serverless');
    const template: Template = JSON.parse(
      await readFile(path.join(packaged, 'cloudformation-template-update-stack.json'), 'utf8'),
    );
    const archive = async (name: string) => (bundle ? readFile(path.join(packaged, `${name}.zip`)) : undefined);
    const names = ['allocator', ...handlersIn(template)];
    const archives = new Map(await Promise.all(names.map(async (name) => [name, await archive(name)] as const)));
    return { template, archives };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function handlersIn({ Resources }: Template): string[] {
  const handlers = Object.values(Resources).flatMap(({ Type, Properties }) =>
    Type === 'AWS::Lambda::Function' ? [String(Properties.Handler)] : [],
  );
  return handlers.map((handler) => path.basename(handler, '.handler'));
}

/** The template is the same, whatever the functions' zips hold. */
async function leaveOutCode(folder: string): Promise<void> {
  const file = path.join(folder, 'serverless.yml');
  const service = parse(await readFile(file, 'utf8'));
  service.plugins = service.plugins.filter((name: string) => name !== 'serverless-esbuild');
  service.package = { artifact: 'package.json' };
  await writeFile(file, stringify(service));
}

async function serverlessPackage(
  folder: string,
  stage: string,
  parameters: Readonly<Record<string, string>>,
): Promise<void> {
  const program = path.join(repository, 'node_modules', 'serverless', 'bin', 'serverless.js');
  const given = Object.entries(parameters).flatMap(([name, value]) => ['--param', `${name}=${value}`]);
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'none',
    AWS_SECRET_ACCESS_KEY: 'none',
  };
  // docs/kubeconfig-secret.md sets it, in the shell that may deploy next.
  const command = ['-c', 'umask 077 && exec "$0" "$@"', process.execPath, program, 'package', '--stage', stage];
  const running = promisify(execFile)('/bin/sh', [...command, ...given], {
    cwd: folder,
    env,
  });
  running.child.stdin?.end();
  await running;
}
