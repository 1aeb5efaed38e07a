import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { VERSION } from '../../lib/runtime/version.ts';
import { ACCOUNT, REGION } from './emulator-aws.ts';
import { REPOSITORY, readInRepository } from './repository.ts';

/** The files that `serverless deploy` reads and that `kbctl` runs. */
const COPIED = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'serverless.yml',
  'cluster.example.yml',
  'cli',
  'deploy',
  'functions',
  'lib',
  'local',
  'tools',
];
/** Just below the time limit of a deployment test, because commands are slow on a busy machine. */
const COMMAND_TIMEOUT_MS = 580_000;

export interface Release {
  readonly folder: string;
  readonly version: string;
}

export interface Ran {
  readonly code: number | null;
  readonly output: string;
}

/** The identity of `serverless` in the emulator. */
export const DEPLOYER = 'deployer';

/** Copies the repository, so that a test may write a `cluster.yml` and deploy. Commands in it use only the AWS at `endpoint`. */
export function copyProject(endpoint: string) {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'kube-bootstrap-controller-project-'));
  for (const name of COPIED) cpSync(join(REPOSITORY, name), join(folder, name), { recursive: true });
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  const run = (command: string, args: readonly string[], accessKeyId = 'test') =>
    runIn(folder, emulatedAws(endpoint, accessKeyId), command, args);
  return {
    folder,
    /** Runs `serverless <args>` of this repository. @throws Error with the output if it fails. */
    async serverless(args: readonly string[]) {
      const program = 'node_modules/serverless/bin/serverless.js';
      const { code, output } = await run(process.execPath, [program, ...args], DEPLOYER);
      if (code !== 0) throw new Error(`serverless ${args.join(' ')} ended with ${code}\n${output}`);
      return output;
    },
    release(version = VERSION): Release {
      const built = join(folder, 'release', version);
      if (!existsSync(built)) {
        for (const file of ['package.json', 'lib/runtime/version.ts']) {
          const text = readInRepository(file).replace(VERSION, version);
          writeFileSync(join(folder, file), text);
        }
        // The code of these two functions does not import the version, so both releases would have the same code. This line makes
        // the code of each release different.
        for (const file of ['functions/allocate.ts', 'functions/admission.ts']) {
          const text = readInRepository(file);
          writeFileSync(join(folder, file), `${text}\nObject.assign(globalThis, { release: '${version}' });\n`);
        }
        execFileSync(process.execPath, ['tools/release.ts'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
      }
      return { folder: built, version };
    },
    /** Runs a shell command that may use `serverless` and `npx`. Never rejects. */
    run: (command: string) => run('bash', ['-euo', 'pipefail', '-c', command]),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function runIn(
  folder: string,
  aws: Readonly<Record<string, string>>,
  command: string,
  args: readonly string[],
): Promise<Ran> {
  const child = spawn(command, args, {
    cwd: folder,
    env: {
      PATH: [join(folder, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH']].join(':'),
      HOME: folder,
      ...aws,
      SLS_TELEMETRY_DISABLED: '1',
      SLS_NOTIFICATIONS_MODE: 'off',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, output: output + errors };
}

/** Returns only the variables that point the AWS SDK to the emulator. */
export function emulatedAws(endpoint: string, accessKeyId: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_ACCOUNT_ID: ACCOUNT,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}
