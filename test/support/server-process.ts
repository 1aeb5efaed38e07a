import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const readyTimeoutMs = 60_000;
const stopTimeoutMs = 5_000;

/** A server that runs as a child process and logs into its folder. It always ends together with this process. */
export type ServerProcess = ReturnType<typeof spawnServer>;

/**
 * Starts `command` and waits until `isReady` returns true. Removes the folder if the server does not start.
 * @throws Error with the end of the server's log if it ends before that, or is not ready within a minute
 */
export async function startServer(
  command: string,
  args: readonly string[],
  folder: string,
  isReady: () => Promise<boolean>,
): Promise<ServerProcess> {
  const server = spawnServer(command, args, folder);
  const deadline = Date.now() + readyTimeoutMs;
  while (!(await isReady().catch(() => false))) {
    const late = Date.now() > deadline ? `was not ready within ${readyTimeoutMs / 1000} s` : undefined;
    const failure = server.ended() ?? late;
    if (failure !== undefined) {
      await server.kill();
      const log = server.log();
      rmSync(folder, { recursive: true, force: true });
      throw new Error(`${command} ${failure}. It was started with\n${args.join('\n')}\nand said\n${log}`);
    }
    await sleep(50);
  }
  return server;
}

function spawnServer(command: string, args: readonly string[], folder: string) {
  const logFile = join(folder, 'log');
  const log = openSync(logFile, 'a');
  // The server has its own session: Ctrl-C in a terminal reaches only the tests, and their end then ends the server.
  const child = spawn(command, args, { cwd: folder, env: {}, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  child.unref(); // The server keeps this process running only while it stops.

  let end: string | undefined;
  const gone = new Promise<void>((resolve) => {
    const endAs = (how: string) => {
      end ??= how;
      resolve();
    };
    child.once('error', (error) => endAs(`could not be started (${error.message})`));
    child.once('exit', (code, signal) => endAs(signal === null ? `ended with code ${code}` : `was ended by ${signal}`));
  });
  if (child.pid !== undefined) guard(child.pid, folder, gone);

  return {
    /** Returns how the server ended, as the end of a sentence, or `undefined` while it runs. */
    ended: () => end,
    log: () => readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-40).join('\n'),
    /** Sends SIGTERM and does not wait. */
    askToStop: () => void child.kill('SIGTERM'),
    /** Sends SIGTERM, and SIGKILL after five seconds. Waits until the process has ended. */
    async stop() {
      child.ref();
      child.kill('SIGTERM');
      const impatience = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
      await gone;
      clearTimeout(impatience);
    },
    /** Sends SIGKILL. Waits until the process has ended. */
    async kill() {
      child.ref();
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/**
 * Starts a shell that waits for the end of this process and then kills `pid` and removes `folder`. The shell's standard input
 * closes at that end, even after a SIGKILL. Signal handlers would not work: jest gives tests a copy of `process` that receives
 * no signals.
 */
function guard(pid: number, folder: string, gone: Promise<void>): void {
  const script = 'cat >/dev/null; kill -KILL "$1"; rm -rf "$2"';
  const args = ['-c', script, 'guard', String(pid), folder];
  const watcher = spawn('sh', args, { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watcher.unref();
  void gone.then(() => watcher.kill('SIGKILL'));
}

/** Returns a port that is free on all `hosts`, below the port range of outgoing connections. */
export async function freePort(...hosts: readonly string[]): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(20_000, 30_000);
    const free = await Promise.all(hosts.map((host) => isFree(host, port)));
    if (free.every(Boolean)) return port;
  }
  throw new Error(`found no port between 20000 and 29999 that is free on ${hosts.join(' and ')}`);
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}
