import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const RUNTIME = fileURLToPath(new URL('./emulator-runtime.ts', import.meta.url));

/** A function and the settings of its processes. */
export interface Runnable {
  /** The folder of the unpacked code. */
  readonly folder: string;
  /** The folder of the unpacked layers. It replaces `/opt` in imports. */
  readonly opt: string;
  /** The handler, such as `functions/doctor.handler`. */
  readonly handler: string;
  readonly limitMs: number;
  readonly environment: Readonly<Record<string, string>>;
  /** The share of a core for each process. Lambda gives a smaller share to a function with less memory. Default: a whole core. */
  readonly cpuShare?: number;
}

/** The time that a process runs before it is stopped. */
const SLICE_MS = 50;
/** The time after the start of a process in which it has a whole core. */
const START_MS = 1_000;

/** Stops and continues a process, so that it gets its share of a core. @returns a function that ends this */
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

/** The result of an invocation. */
export interface Invocation {
  /** The answer from its JSON, if the handler answered. */
  readonly answer?: unknown;
  /** The largest memory of the process so far, if the handler answered. */
  readonly peakMemoryMb?: number;
  /** The error that the handler threw, or the error of Lambda if the process ended. */
  readonly error?: { readonly errorType: string; readonly errorMessage: string };
  /** The lines that the invocation wrote to standard output and standard error. */
  readonly lines: readonly string[];
}

interface InvokeOptions {
  /**
   * The time after which the process is killed. Default: the deployed time limit. The function itself always gets the deployed
   * limit as its remaining time.
   */
  readonly killedAfterMs?: number;
}

/** A deployed function, with one process for each simultaneous invocation. */
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
    /** All lines that the function has written. */
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

/** Starts a process of a function. It ends with this process, because its standard input is then closed. */
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
