const EVERY_MS = 100;

/**
 * Measures how late the event loop of this process is, by a timer that should fire every 100 ms.
 * @param clockMs a monotonic clock.
 * @returns ends the measurement: the longest time in ms, from the call until then, for which no timer was served.
 */
export function measureLag(clockMs = () => performance.now()): () => number {
  let worstMs = 0;
  let servedAtMs = clockMs();
  const serve = () => {
    const nowMs = clockMs();
    worstMs = Math.max(worstMs, nowMs - servedAtMs - EVERY_MS);
    servedAtMs = nowMs;
  };
  const timer = setInterval(serve, EVERY_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    serve();
    return worstMs;
  };
}
