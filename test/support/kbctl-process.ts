import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { REPOSITORY } from './repository.ts';

const KBCTL = join(REPOSITORY, 'cli/kbctl.mjs');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface KbctlOptions {
  /** The folder in which the command runs and looks for a local table. */
  readonly cwd: string;
  /** The environment of the command, except for PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
}

export interface RunningKbctl extends Omit<ReturnType<typeof collectOutput>, 'add'> {
  end(signal?: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): Promise<Ran>;
}

export interface KbctlProcess extends RunningKbctl {
  readonly child: ChildProcess;
}

/** Collects the output of a command. `add` adds text to a stream. */
export function collectOutput() {
  const written = { stdout: '', stderr: '', output: '' };
  return {
    add: (stream: 'stdout' | 'stderr', text: string) => {
      written[stream] += text;
      written.output += text;
    },
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    /** Returns the output of both streams, in the order in which it was written. */
    output: () => written.output,
    untilItPrints: (pattern: RegExp) =>
      eventually(() => {
        const { output } = written;
        if (!pattern.test(output)) throw new Error(`it printed nothing like ${pattern}, but\n${output}`);
      }),
  };
}

export function startKbctl(words: readonly string[], { cwd, env, stdin = '' }: KbctlOptions): KbctlProcess {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', KBCTL, ...words], {
    cwd,
    env: { PATH, HOME, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { add, ...printed } = collectOutput();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => add(stream, text));
  }
  // A process that does not read its standard input may have ended already.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const closed = once(child, 'close');
  return {
    child,
    ...printed,
    async end(signal) {
      if (signal !== undefined) child.kill(signal);
      await closed;
      return { code: child.exitCode, stdout: printed.stdout(), stderr: printed.stderr() };
    },
  };
}

/** Starts `kbctl run` in the repository, as `npm start` does. */
export function startRun(args: readonly string[], env: Readonly<Record<string, string>> = {}): KbctlProcess {
  return startKbctl(['run', ...args], { cwd: REPOSITORY, env });
}
