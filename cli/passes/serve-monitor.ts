import { createServer, type IncomingMessage } from 'node:http';
import { type ListenAddress, listening } from '../listen.ts';
import { sharedRead } from '../page/serve-page.ts';
import type { RunMonitor } from './run-monitor.ts';

interface MonitorReply {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
}

type Monitored = Pick<RunMonitor, 'stuckLoops' | 'isReady' | 'metrics'>;

/** Answers scrapes and probes. The answers have no secrets, so they need no key. */
export async function answerMonitorRequest(
  { method, url }: Pick<IncomingMessage, 'method' | 'url'>,
  { stuckLoops, isReady, metrics }: Monitored,
): Promise<MonitorReply> {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: 'Use GET.\n' };
  switch (url?.split('?', 1)[0] ?? '') {
    case '/metrics': {
      const { contentType, text } = await metrics();
      return { status: 200, contentType, body: text };
    }
    case '/healthz': {
      const stuck = stuckLoops();
      if (stuck.length === 0) return { status: 200, body: 'ok\n' };
      return { status: 503, body: `No claim of a tick was tried for two intervals: ${stuck.join(', ')}.\n` };
    }
    case '/readyz':
      if (isReady()) return { status: 200, body: 'ok\n' };
      return { status: 503, body: 'The table does not answer: see the log.\n' };
    default:
      return { status: 404, body: 'Not found: use /metrics, /healthz or /readyz.\n' };
  }
}

/** How long a rendered page is used for other scrapes. */
const FRESH_MS = 1_000;
const MOST_CONNECTIONS = 64;

/** @throws CliError if it cannot listen at the address */
export async function serveMonitor(monitor: RunMonitor, address: ListenAddress, nowMs: () => number) {
  const ended = new AbortController();
  const metrics = sharedRead(() => monitor.metrics(), { freshMs: FRESH_MS, nowMs, ended: ended.signal });
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
    answerMonitorRequest(request, { ...monitor, metrics })
      .then(({ status, body, contentType = 'text/plain; charset=utf-8' }) =>
        response.writeHead(status, { 'content-type': contentType }).end(request.method === 'HEAD' ? '' : body),
      )
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : new Error(String(error))));
  });
  server.maxConnections = MOST_CONNECTIONS;
  const close = await listening(server, address, 'Metrics');
  return {
    close: async () => {
      ended.abort();
      await close();
    },
  };
}
