import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { type IncomingMessage, ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ACCOUNT, REGION } from '../support/emulator-aws.ts';
import { serve } from '../support/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A function and the settings of its processes. */
export interface Runnable {
  /** The folder of the unpacked code. */
  readonly folder: string;
  /** The folder of the unpacked layers, which the processes see as `/opt`. Empty if there are none. */
  readonly opt: string;
  /** The handler, such as `functions/doctor.handler`. */
  readonly handler: string;
  readonly limitMs: number;
  readonly environment: Readonly<Record<string, string>>;
  /** The share of a core for each process. Lambda gives a smaller share to a function with less memory. Default: a whole core. */
  readonly cpuShare?: number;
}

/** The result of an invocation. */
export interface Invocation extends Outcome {
  /** The largest memory of the process so far, if the handler answered. */
  readonly peakMemoryMb?: number;
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

/** The time that a process runs before it is stopped. */
const SLICE_MS = 50;
/** Stops and continues a process, so that it gets its share of a core. */
function throttle(child: ChildProcess, share: number): void {
  const periodMs = SLICE_MS / share;
  const timer = setInterval(() => {
    child.kill('SIGSTOP');
    setTimeout(() => child.kill('SIGCONT'), periodMs - SLICE_MS);
  }, periodMs).unref();
  child.once('close', () => clearInterval(timer));
}

/** A deployed function, with one process for each simultaneous invocation. */
export type RunningFunction = ReturnType<typeof runFunction>;
type Instance = Awaited<ReturnType<typeof startInstance>>;

export function runFunction(runnable: Runnable) {
  const instances: Instance[] = [];
  const start = async () => {
    const instance = await startInstance(runnable);
    instances.push(instance);
    return instance;
  };
  return {
    /** Returns all lines that the processes of the function have written. */
    lines: () => instances.flatMap((instance) => instance.lines()),
    async invoke(event: unknown, options: InvokeOptions = {}): Promise<Invocation> {
      const instance = instances.find(({ isIdle }) => isIdle()) ?? (await start());
      return instance.invoke(event, options);
    },
    stop: async () => void (await Promise.all(instances.map((instance) => instance.kill()))),
  };
}

/**
 * Starts a process of a function under Amazon's runtime client. The process ends with this one. Its log is a file, so that all its
 * lines are there when it answers.
 */
async function startInstance(runnable: Runnable) {
  const { cpuShare = 1, limitMs } = runnable;
  const name = runnable.environment['AWS_LAMBDA_FUNCTION_NAME'] ?? 'function';
  const api = await startRuntimeApi(`arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`);
  const logFile = join(temporaryFolder(), 'log');
  const log = openSync(logFile, 'a');
  const [command = '', ...words] = commandOf(runnable);
  const env = { ...environmentOf(runnable), AWS_LAMBDA_RUNTIME_API: api.host };
  const child = spawn(command, words, { cwd: runnable.folder, env, stdio: ['ignore', log, log] });
  closeSync(log);
  let state: 'busy' | 'idle' | 'ended' = 'busy';
  const closed = new Promise<void>((resolve) => {
    child.once('close', (code, signal) => {
      state = 'ended';
      api.fail({ error: { errorType: 'Runtime.ExitError', errorMessage: `the process ended: ${signal ?? code}` } });
      resolve(api.close());
    });
  });
  const lines = () => readFileSync(logFile, 'utf8').split('\n').slice(0, -1);
  let isFirst = true;
  let reported = 0;
  const kill = async () => {
    state = 'ended';
    child.kill('SIGKILL');
    await closed;
  };
  return {
    isIdle: () => state === 'idle',
    lines,
    kill,
    async invoke(event: unknown, { killedAfterMs = limitMs }: InvokeOptions): Promise<Invocation> {
      state = 'busy';
      await api.ready();
      // Lambda gives a whole core to the import of the handler.
      if (isFirst && cpuShare < 1) throttle(child, cpuShare);
      isFirst = false;
      const timer = setTimeout(() => {
        const errorMessage = `Task timed out after ${killedAfterMs / 1000} seconds`;
        api.fail({ error: { errorType: 'Sandbox.Timedout', errorMessage } });
        void kill();
      }, killedAfterMs);
      const outcome = await api.deliver({ requestId: randomUUID(), event, deadlineMs: Date.now() + limitMs });
      clearTimeout(timer);
      const memory = 'answer' in outcome && { peakMemoryMb: peakMemoryMb(child.pid) };
      const written = lines().slice(reported);
      reported += written.length;
      if (state === 'busy') state = 'idle';
      return { ...outcome, ...memory, lines: written };
    },
  };
}

function commandOf({ opt, handler }: Runnable): string[] {
  const client = join(runtimeClient(), 'node_modules/aws-lambda-ric/index.mjs');
  const mounted = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /opt && exec "$@"'];
  return [
    ...['setpriv', '--pdeathsig', 'KILL'],
    ...(opt === '' ? [] : [...mounted, opt]),
    ...[process.execPath, client, handler],
  ];
}

/** Returns the variables of https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html and those of the function. */
function environmentOf({ folder, handler, environment }: Runnable): Record<string, string> {
  return {
    AWS_LAMBDA_FUNCTION_NAME: 'function',
    AWS_LAMBDA_FUNCTION_VERSION: '1',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
    AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
    AWS_LAMBDA_LOG_GROUP_NAME: 'group',
    AWS_LAMBDA_LOG_STREAM_NAME: 'stream',
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    LAMBDA_TASK_ROOT: folder,
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    TZ: ':UTC',
    ...environment,
    _HANDLER: handler,
  };
}

let clientFolder: string | undefined;

/** Returns the folder of Amazon's runtime client. @throws Error if `test/deploy/install.sh` has not installed it */
function runtimeClient(): string {
  if (clientFolder !== undefined) return clientFolder;
  const script = join(import.meta.dirname, 'install.sh');
  const folder = execFileSync('bash', [script, 'runtime-client', '--folder'], { encoding: 'utf8' }).trim();
  if (existsSync(join(folder, 'ready'))) {
    clientFolder = folder;
    return folder;
  }
  throw new Error(`${folder} does not exist: "npm run test:deploy" installs it`);
}

function peakMemoryMb(pid: number | undefined): number {
  const [, kilobytes] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** The result of an invocation, as its process or Lambda reports it. */
interface Outcome {
  /** The answer from its JSON, if the handler answered. */
  readonly answer?: unknown;
  /** The error that the handler threw, or the error of Lambda if the process ended. */
  readonly error?: { readonly errorType: string; readonly errorMessage: string };
}

/** An event for a process, with the headers of the Runtime API. */
interface Delivery {
  readonly requestId: string;
  readonly event: unknown;
  readonly deadlineMs: number;
}

/** Serves the Runtime API to one process. See https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html */
async function startRuntimeApi(functionArn: string) {
  /** Resolves if the process could not import its handler, or ended, or is late. */
  const failed = Promise.withResolvers<Outcome>();
  let next = Promise.withResolvers<ServerResponse>();
  let answered = Promise.withResolvers<Outcome>();

  const accept = async (request: IncomingMessage, response: ServerResponse) => {
    const operation = /^\/2018-06-01\/runtime\/(?:invocation\/(?:[\w-]{36}\/)?)?([\w/]+)$/.exec(request.url ?? '')?.[1];
    if (operation === 'next') return next.resolve(response);
    const body = JSON.parse(await text(request));
    response.writeHead(202).end('{}');
    if (operation === 'response') return answered.resolve({ answer: body });
    const { errorType, errorMessage } = body;
    (operation === 'error' ? answered : failed).resolve({ error: { errorType, errorMessage } });
  };
  const { url, close } = await serve((request, response) => {
    accept(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  return {
    /** The value of `AWS_LAMBDA_RUNTIME_API`. */
    host: new URL(url).host,
    close,
    /** Waits until the process asks for an event, or has failed. */
    ready: async () => void (await Promise.race([next.promise, failed.promise])),
    /** Ends the current invocation and all later ones. */
    fail: failed.resolve,
    /** Delivers an event to the process, and waits for the end of the invocation. */
    async deliver({ requestId, event, deadlineMs }: Delivery): Promise<Outcome> {
      const response = await Promise.race([next.promise, failed.promise]);
      if (!(response instanceof ServerResponse)) return response;
      next = Promise.withResolvers();
      answered = Promise.withResolvers();
      response.writeHead(200, {
        'content-type': 'application/json',
        'lambda-runtime-aws-request-id': requestId,
        'lambda-runtime-deadline-ms': String(deadlineMs),
        'lambda-runtime-invoked-function-arn': functionArn,
      });
      response.end(JSON.stringify(event));
      return Promise.race([answered.promise, failed.promise]);
    },
  };
}
