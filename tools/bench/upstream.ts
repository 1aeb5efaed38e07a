// Upstream's repair as a program, which Go builds once for each run.
import { execFile, execFileSync } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const MODULE = path.join(import.meta.dirname, '../../test/conformance/control-plane');

/** The maximum output in bytes. It is large, because upstream's repair logs each finding. */
const LONGEST_OUTPUT = 64 * 1024 * 1024;

export function upstreamProgram(folder: string): string {
  const program = path.join(folder, 'bench-repair');
  execFileSync('go', ['build', '-buildvcs=false', '-mod=readonly', '-trimpath', '-o', program, './bench-repair'], {
    cwd: MODULE,
    env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
    stdio: 'inherit',
  });
  return program;
}

export async function linesOf(program: string, args: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(program, args, { maxBuffer: LONGEST_OUTPUT });
  return stdout.trim().split('\n');
}
