import { Readable, Writable } from 'node:stream';
import { setTimeout as timer } from 'node:timers/promises';
import { runKbctl } from '../../cli/run-kbctl.ts';
import { type KbctlOptions, type Ran, type RunningKbctl, untilOutput } from './kbctl-process.ts';

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
  const written: Written[] = [];
  const ended = new AbortController();
  const code = last.then(() => call(words, options, written, ended.signal));
  last = code.catch(() => undefined);
  const stdout = () => textOf(written, 'out');
  const stderr = () => textOf(written, 'err');
  const output = () => textOf(written);
  return {
    stdout,
    stderr,
    output,
    untilItPrints: untilOutput(output),
    end: async (signal) => {
      if (signal !== undefined) ended.abort();
      return { code: await code, stdout: stdout(), stderr: stderr() };
    },
  };
}

interface Written {
  readonly to: 'out' | 'err';
  readonly chunk: Buffer;
}

async function call(
  words: readonly string[],
  { cwd, env, stdin = '', aheadMs = 0 }: CallOptions,
  written: Written[],
  ended: AbortSignal,
): Promise<number> {
  const { PATH = '', HOME = '' } = process.env;
  const input = Readable.from([Buffer.from(stdin)]);
  const restore = replaceEnvironment({ PATH, HOME, ...env }, cwd);
  try {
    return await runKbctl(words, {
      terminal: { in: input, out: collector('out', written), err: collector('err', written) },
      ended,
      nowMs: () => Date.now() + aheadMs,
      // Waits are short, but other work of the process can still run.
      sleep: (ms, signal) => timer(Math.min(ms, 10), undefined, { signal }),
    });
  } finally {
    restore();
  }
}

function textOf(written: readonly Written[], stream?: Written['to']): string {
  const chunks = written.filter(({ to }) => stream === undefined || to === stream).map(({ chunk }) => chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function collector(to: Written['to'], written: Written[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push({ to, chunk });
      done();
    },
  });
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
