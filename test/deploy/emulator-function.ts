import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const RUNTIME = fileURLToPath(new URL('./emulator-runtime.ts', import.meta.url));

/** A function as it is to be run. */
export interface Runnable {
  /** Where its zip is unpacked. */
  readonly folder: string;
  /** Where its layers are unpacked, for what it imports from `/opt`. */
  readonly opt: string;
  /** `functions/doctor.handler` */
  readonly handler: string;
  readonly limitMs: number;
  readonly environment: Readonly<Record<string, string>>;
  /** The share of a core that each process has, as with less memory in Lambda. Default: all of it. */
  readonly cpuShare?: number;
}

/** For so long a process runs before it is stopped. */
const SLICE_MS = 50;
/** While a process starts, it has a whole core. */
const START_MS = 1_000;

/** Stops and continues a process, so that it has its share of a core. @returns what ends that */
function throttle(child: ChildProcess, share: number): () => void {
  const periodMs = SLICE_MS / share;
  let timer = setTimeout(() => {
    timer = setInterval(() => {
      child.kill('SIGSTOP');
      setTimeout(() => child.kill('SIGCONT'), periodMs - SLICE_MS);
    }, periodMs);
  }, START_MS);
  return () => clearInterval(timer);
}

/** One invocation. */
export interface Invocation {
  /** The answer's JSON, when the handler answered. */
  readonly answer?: unknown;
  /** The most that the process had until then, when the handler answered. */
  readonly peakMemoryMb?: number;
  /** What the handler threw, or that Lambda ended it. */
  readonly error?: { readonly errorType: string; readonly errorMessage: string };
  /** Lines of its standard output and standard error. */
  readonly lines: readonly string[];
}

interface InvokeOptions {
  /** When the process is killed. Default: at the deployed limit, which is what the function is told in any case. */
  readonly killedAfterMs?: number;
}

/** One deployed function, in as many processes as it has invocations at the same time. */
export type RunningFunction = ReturnType<typeof runFunction>;
type Instance = ReturnType<typeof startInstance>;

export function runFunction(runnable: Runnable) {
  const lines: string[] = [];
  const idle: Instance[] = [];
  const all = new Set<Instance>();
  const start = () => {
    const instance = startInstance(runnable, lines);
    all.add(instance);
    return instance;
  };
  return {
    /** Every line that it ever wrote. */
    lines: lines as readonly string[],
    async invoke(event: unknown, options: InvokeOptions = {}) {
      const instance = idle.pop() ?? start();
      const invocation = await instance.invoke(event, options);
      if (instance.alive()) idle.push(instance);
      else all.delete(instance);
      return invocation;
    },
    async stop() {
      idle.length = 0;
      await Promise.all([...all].map((instance) => instance.kill()));
      all.clear();
    },
  };
}

/** It ends with this process: its standard input does. */
function startInstance({ folder, opt, handler, environment, limitMs, cpuShare = 1 }: Runnable, allLines: string[]) {
  const mark = `${randomUUID()} `;
  const child = spawn(process.execPath, [RUNTIME, mark, handler, opt], {
    cwd: folder,
    env: { ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const endThrottle = cpuShare < 1 ? throttle(child, cpuShare) : () => undefined;
  let lines: string[] = [];
  let end: (how: Omit<Invocation, 'lines'>) => void = () => undefined;
  const log = (line: string) => {
    lines.push(line);
    allLines.push(line);
  };
  createInterface({ input: child.stderr }).on('line', log);
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith(mark)) end(JSON.parse(line.slice(mark.length)));
    else log(line);
  });
  child.stdin.on('error', () => undefined);
  let alive = true;
  const closed = new Promise<void>((resolve) => {
    child.once('close', (code, signal) => {
      alive = false;
      endThrottle();
      end({ error: { errorType: 'Runtime.ExitError', errorMessage: `the process ended: ${signal ?? code}` } });
      resolve();
    });
  });
  const kill = async () => {
    alive = false;
    child.kill('SIGKILL');
    await closed;
  };
  return {
    alive: () => alive,
    kill,
    async invoke(event: unknown, { killedAfterMs = limitMs }: InvokeOptions): Promise<Invocation> {
      lines = [];
      const ended = new Promise<Omit<Invocation, 'lines'>>((resolve) => {
        end = resolve;
      });
      const timer = setTimeout(() => {
        end({
          error: {
            errorType: 'Sandbox.Timedout',
            errorMessage: `Task timed out after ${killedAfterMs / 1000} seconds`,
          },
        });
        void kill();
      }, killedAfterMs);
      child.stdin.write(`${JSON.stringify({ requestId: randomUUID(), event, limitMs })}\n`);
      const how = await ended;
      clearTimeout(timer);
      return { ...how, lines };
    },
  };
}
