/** npm passes on the signal that Ctrl-C has already sent to both of us: that is no second one. */
const SAME_SIGNAL_MS = 500;

/** Aborts at the first SIGINT or SIGTERM; a second one ends the process at once, with exit code 130. */
export function endOfProcess(): AbortSignal {
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
