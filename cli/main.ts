import { setTimeout as timer } from 'node:timers/promises';
import { runKbctl } from './run-kbctl.ts';
import { endWhenUnread } from './terminal.ts';

endWhenUnread(process.stdout);
endWhenUnread(process.stderr);

/** A process that npm started gets Ctrl-C from the terminal and from npm: a second signal within this time is ignored. */
const SAME_SIGNAL_MS = 500;

/** Aborts at the first SIGINT or SIGTERM; a second signal ends the process at once, with exit code 130. */
function endOfProcess(): AbortSignal {
  const controller = new AbortController();
  let firstMs: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      firstMs ??= Date.now();
      if (Date.now() - firstMs > SAME_SIGNAL_MS) process.exit(130);
      controller.abort();
    });
  }
  return controller.signal;
}

/** Waits until a pipe has taken all output: if the process ended earlier, the output would be truncated. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.write('', () => resolve());
  });
}

const exitCode = await runKbctl(process.argv.slice(2), {
  terminal: { in: process.stdin, out: process.stdout, err: process.stderr },
  ended: endOfProcess(),
  nowMs: Date.now,
  sleep: (ms, signal) => timer(ms, undefined, { signal }),
});
await Promise.all([written(process.stdout), written(process.stderr)]);
// An unfinished connection would keep the process running.
process.exit(process.exitCode ?? exitCode);
