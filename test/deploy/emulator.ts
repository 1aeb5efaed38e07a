import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { awsCalls } from '../support/emulator-aws.ts';
import { freePort, startServer } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startCallRecorder } from './emulator-calls.ts';

const deployTests = import.meta.dirname;

/** An empty AWS emulator on a loopback port, which ends with this process. */
export type Emulator = Awaited<ReturnType<typeof startEmulator>>;

/** Starts moto's server. @throws Error when `test/deploy/install-emulator.sh` has not installed it. */
export async function startEmulator() {
  const script = join(deployTests, 'install-emulator.sh');
  const python = join(execFileSync('bash', [script, '--folder'], { encoding: 'utf8' }).trim(), 'bin/python');
  if (!existsSync(python)) throw new Error(`${python} is not there: "npm run test:deploy" installs it`);
  const port = await freePort('127.0.0.1');
  const endpoint = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${endpoint}/moto-api/`)).ok;
  const words = [join(deployTests, 'emulator.py'), '-p', String(port)];
  const server = await startServer(python, words, temporaryFolder(), isReady);
  const recorder = await startCallRecorder(endpoint);
  return {
    /** The client of the emulator. Its calls are not recorded. */
    aws: awsCalls(endpoint),
    /** The recording proxy that deployed functions call. */
    recorder,
    async close() {
      await recorder.close();
      await server.kill(); // it has no state to save
    },
  };
}
