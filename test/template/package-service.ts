import { execFile } from 'node:child_process';
import { cpSync, symlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '../support/repository.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Copies the sources that Serverless reads to a temporary folder, without those of functions. Returns the folder. */
export function copySources(...others: readonly string[]): string {
  const folder = temporaryFolder();
  for (const name of ['deploy', 'lib', 'tools', 'serverless.yml', 'package.json', 'tsconfig.json', ...others]) {
    cpSync(path.join(REPOSITORY, name), path.join(folder, name), { recursive: true });
  }
  symlinkSync(path.join(REPOSITORY, 'node_modules'), path.join(folder, 'node_modules'));
  return folder;
}

/** Runs `serverless package` in a copy of the sources, without a network. Returns the template and the packages by name. */
export async function packageService(parameters: Readonly<Record<string, string>> = {}) {
  const folder = copySources('functions');
  await serverlessPackage(folder, parameters);
  const packaged = path.join(folder, '.serverless');
  const read = (name: string) => readFile(path.join(packaged, name));
  const template: object = JSON.parse((await read('cloudformation-template-update-stack.json')).toString());
  const handlers = handlersIn(template);
  const names = ['allocator', ...handlers];
  const archives = await Promise.all(names.map(async (name) => [name, await read(`${name}.zip`)] as const));
  const maps = handlers.map(async (name) => {
    const map = await readFile(path.join(folder, '.cache/maps/functions', `${name}.mjs.map`), 'utf8');
    return [name, JSON.parse(map) as { readonly sources: readonly string[] }] as const;
  });
  return { template, archives: new Map(archives), maps: new Map(await Promise.all(maps)) };
}

function handlersIn(template: object): string[] {
  return [...JSON.stringify(template).matchAll(/"Handler":"functions\/([\w-]+)\.handler"/g)].map(
    ([, name = '']) => name,
  );
}

async function serverlessPackage(folder: string, parameters: Readonly<Record<string, string>>): Promise<void> {
  const program = path.join(REPOSITORY, 'node_modules', 'serverless', 'bin', 'serverless.js');
  const given = Object.entries(parameters).flatMap(([name, value]) => ['--param', `${name}=${value}`]);
  const aws = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' };
  const env = { PATH: process.env['PATH'], HOME: folder, ...aws };
  // The umask is that of docs/kubeconfig-secret.md, because a user may deploy from the same shell.
  const command = ['-c', 'umask 077 && exec "$0" "$@"', process.execPath, program, 'package', '--stage', 'dev'];
  const running = promisify(execFile)('/bin/sh', [...command, ...given], { cwd: folder, env });
  running.child.stdin?.end();
  await running;
}
