import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { eventually } from './eventually.ts';

const REPOSITORY = join(import.meta.dirname, '../..');

/** What `npm start` runs, as a process of its own. */
export interface StartProcess {
  /** Everything that it wrote until now. */
  output(): string;
  /** Waits until it wrote something like that. */
  untilItSaid(pattern: RegExp): Promise<void>;
  /** Sends the signal, if any, and waits for the end of the process. */
  end(signal?: 'SIGINT' | 'SIGTERM'): Promise<Ended>;
  /** SIGKILL, if it still runs. */
  kill(): Promise<void>;
}

export interface Ended {
  readonly code: number | null;
  /** From the signal on. */
  readonly tookMs: number;
}

/** Starts it with these arguments; `env` is added to the environment. */
export function startProcess(args: readonly string[], env: Readonly<Record<string, string>> = {}): StartProcess {
  const { KUBECONFIG: _, ...inherited } = process.env;
  const command = ['cli/kbctl.mjs', 'run', ...args];
  const child = spawn(process.execPath, command, {
    cwd: REPOSITORY,
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const closed = once(child, 'close');
  return {
    output: () => output,
    untilItSaid: (pattern) =>
      eventually(() => {
        if (!pattern.test(output)) throw new Error(`it said nothing like ${pattern}, but\n${output}`);
      }),
    async end(signal) {
      const askedAtMs = Date.now();
      if (signal !== undefined) child.kill(signal);
      await closed;
      return { code: child.exitCode, tookMs: Date.now() - askedAtMs };
    },
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}
