import { Readable, Writable } from 'node:stream';
import { runKbctl } from '../../cli/run-kbctl.ts';
import type { KbctlOptions, Ran } from './kbctl-process.ts';

export interface Called {
  readonly ran: Ran;
  /** Both streams, in the order in which they were written. */
  readonly output: string;
}

export interface CallOptions extends KbctlOptions {
  /** How far the clock of its host is ahead. Default: 0. */
  readonly aheadMs?: number;
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `kbctl` in this process, as a process of its own would: with this environment, in this folder. One command at a
 * time, since a process has one of each.
 */
export function callKbctl(words: readonly string[], options: CallOptions): Promise<Called> {
  const result = last.then(() => call(words, options));
  last = result.catch(() => undefined);
  return result;
}

interface Written {
  readonly to: 'out' | 'err';
  readonly chunk: Buffer;
}

async function call(words: readonly string[], { cwd, env, stdin = '', aheadMs = 0 }: CallOptions): Promise<Called> {
  const written: Written[] = [];
  const { PATH = '', HOME = '' } = process.env;
  const restore = replaceEnvironment({ PATH, HOME, ...env }, cwd);
  try {
    const code = await runKbctl(words, {
      terminal: {
        in: Readable.from([Buffer.from(stdin)]),
        out: collector('out', written),
        err: collector('err', written),
      },
      ended: new AbortController().signal,
      nowMs: () => Date.now() + aheadMs,
    });
    const textOf = (chunks: readonly Written[]) => Buffer.concat(chunks.map(({ chunk }) => chunk)).toString('utf8');
    const [stdout, stderr] = (['out', 'err'] as const).map((to) => textOf(written.filter((each) => each.to === to)));
    return { ran: { code, stdout: stdout ?? '', stderr: stderr ?? '' }, output: textOf(written) };
  } finally {
    restore();
  }
}

function collector(to: Written['to'], written: Written[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push({ to, chunk });
      done();
    },
  });
}

/** @returns what puts the former ones back. */
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
