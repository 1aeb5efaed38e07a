import { Readable, Writable } from 'node:stream';
import { setTimeout as timer } from 'node:timers/promises';
import { runKbctl } from '../../cli/run-kbctl.ts';
import { collectOutput, type KbctlOptions, type Ran, type RunningKbctl } from './kbctl-process.ts';

export interface CallOptions extends KbctlOptions {
  /** The time by which the clock of the host is ahead. Default: 0. */
  readonly aheadMs?: number;
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `kbctl` in this process with the given environment and folder, as a separate process would. Commands run one at a time,
 * because a process has only one environment and one folder.
 */
export function callKbctl(words: readonly string[], options: CallOptions): Promise<Ran> {
  return beginKbctl(words, options).end();
}

/** Starts `kbctl` in this process and does not wait for its end. A signal ends it as Ctrl-C does. */
export function beginKbctl(words: readonly string[], options: CallOptions): RunningKbctl {
  const { add, ...printed } = collectOutput();
  const ended = new AbortController();
  const code = last.then(() => call(words, options, add, ended.signal));
  last = code.catch(() => undefined);
  return {
    ...printed,
    end: async (signal) => {
      if (signal !== undefined) ended.abort();
      return { code: await code, stdout: printed.stdout(), stderr: printed.stderr() };
    },
  };
}

type Add = ReturnType<typeof collectOutput>['add'];

async function call(
  words: readonly string[],
  { cwd, env, stdin = '', aheadMs = 0 }: CallOptions,
  add: Add,
  ended: AbortSignal,
): Promise<number> {
  const { PATH = '', HOME = '' } = process.env;
  const input = Readable.from([Buffer.from(stdin)]);
  const restore = replaceEnvironment({ PATH, HOME, ...env }, cwd);
  try {
    return await runKbctl(words, {
      terminal: { in: input, out: collector('stdout', add), err: collector('stderr', add) },
      ended,
      nowMs: () => Date.now() + aheadMs,
      // Waits are short, but other work of the process can still run.
      sleep: (ms, signal) => timer(Math.min(ms, 10), undefined, { signal }),
    });
  } finally {
    restore();
  }
}

function collector(stream: Parameters<Add>[0], add: Add): Writable {
  const write = (text: string, _encoding: string, done: () => void) => {
    add(stream, text);
    done();
  };
  return new Writable({ decodeStrings: false, write });
}

/** Replaces the environment and the folder. @returns a function that restores the former ones */
function replaceEnvironment(env: Readonly<Record<string, string>>, cwd: string): () => void {
  const former = { env: { ...process.env }, cwd: process.cwd() };
  const set = (wanted: Readonly<Record<string, string | undefined>>) => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, wanted);
  };
  set(env);
  process.chdir(cwd);
  return () => {
    set(former.env);
    process.chdir(former.cwd);
  };
}
