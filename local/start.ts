import { StartError } from './start-error.ts';
import { parseStartOptions } from './start-options.ts';

/** npm passes on the signal that Ctrl-C has already sent to both of us: that is no second one. */
const SAME_SIGNAL_MS = 500;

async function main(): Promise<number> {
  const asked = parseStartOptions(process.argv.slice(2));
  if ('help' in asked) {
    process.stdout.write(asked.help);
    return 0;
  }
  if ('usage' in asked) {
    process.stderr.write(`${asked.usage}\nTry: npm start -- --help\n`);
    return 2;
  }
  const ended = endOfProcess();
  try {
    const { run } = await import('./run.ts');
    await run(asked.run, ended);
    return 0;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return error.exitCode;
  }
}

/** Aborts at the first SIGINT or SIGTERM; a second one ends the process at once. */
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

// Who reads the output may have seen enough.
process.stdout.on('error', () => process.exit(0));

// Not by itself: a connection that never came about would keep the process for seconds.
process.exit(await main());
