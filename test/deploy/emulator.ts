import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { awsCalls, REGION } from '../support/emulator-aws.ts';
import { freePort, startServer } from '../support/server-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startCallRecorder } from './emulator-calls.ts';

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
