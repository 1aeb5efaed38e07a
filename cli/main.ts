import { endOfProcess } from '../local/end-of-process.ts';
import { runKbctl } from './run-kbctl.ts';
import { endWhenUnread } from './terminal.ts';

endWhenUnread(process.stdout);
endWhenUnread(process.stderr);

/** Waits until a pipe has taken all output: ending the process earlier would cut it. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.write('', () => resolve());
  });
}

const exitCode = await runKbctl(process.argv.slice(2), {
  terminal: { in: process.stdin, out: process.stdout, err: process.stderr },
  ended: endOfProcess(),
  nowMs: Date.now,
});
await Promise.all([written(process.stdout), written(process.stderr)]);
// Not by itself: a connection that never came about would keep the process running.
process.exit(exitCode);
